// What the chat hook of the AI SDK needs to know of the host.
import "./jitless.ts";
import { connectedFetch, errorOf } from "../api/index.ts";
import { lost } from "../connection/state.ts";

/**
 * The `fetch` of a chat transport. An error answer is thrown as an `ApiError`, whose message can
 * be shown, and a stream that was cut shows the banner.
 */
export async function streamFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await connectedFetch(input, init);
  if (!response.ok) throw await errorOf(response);
  if (response.body === null) return response;
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
        // An abort is a user's; anything else is the connection.
        if (!(error instanceof DOMException && error.name === "AbortError")) lost();
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
