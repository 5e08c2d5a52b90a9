// What the chat hook of the AI SDK needs to know of the host.
import "./jitless.ts";
import { connectedFetch, errorOf } from "../api/index.ts";
import { lost } from "../connection/state.ts";

/** The status of an answer without content. */
const NO_CONTENT = 204;

/**
 * The `fetch` of a chat transport. An error answer is thrown as an `ApiError`, whose message can
 * be shown, and a stream that was cut shows the banner.
 */
export async function streamFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await connectedFetch(input, init);
  if (!response.ok) throw await errorOf(response);
  // Chromium gives an answer without content an empty body, and makes no `Response` of both.
  if (response.body === null || response.status === NO_CONTENT) return response;
  const { status, statusText, headers } = response;
  return new Response(watched(response.body), { status, statusText, headers });
}

/** Time after which a page looks again for an answer that was under way and had no stream, in milliseconds. */
const LOOK_AGAIN_MS = 300;

/**
 * The same for a chat that joins answers which are under way. Calls `onMissed` a moment after a request for a stream was
 * answered with none: the answer has ended since the page read that it is under way, or its run has not gone on yet.
 */
export function joiningFetch(onMissed: () => void): typeof streamFetch {
  return async (input, init) => {
    const response = await streamFetch(input, init);
    if (response.status === NO_CONTENT) setTimeout(onMissed, LOOK_AGAIN_MS);
    return response;
  };
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
