// Requests of a chat.
import { connectedFetch, errorOf } from "../api/index.ts";
import { lost } from "../connection/state.ts";

/** Status of a response without content, such as when there is no stream to join. */
export const NO_CONTENT = 204;

/**
 * The `fetch` of a chat transport. It throws an error response as an `ApiError`, whose message can
 * be shown. A stream that was cut shows the banner.
 */
export async function streamFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await connectedFetch(input, init);
  if (!response.ok) throw await errorOf(response);
  // Chromium gives a response without content an empty body, and refuses to create a `Response`
  // from the two.
  if (response.body === null || response.status === NO_CONTENT) return response;
  const { status, statusText, headers } = response;
  return new Response(watched(response.body), { status, statusText, headers });
}

function watched(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        // An abort comes from the user; any other error is a lost connection.
        if (!(error instanceof DOMException && error.name === "AbortError")) lost();
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
