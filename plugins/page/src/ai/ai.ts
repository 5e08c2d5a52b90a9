// Adapts the chat hook of the AI SDK to the host.
import "./jitless.ts";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { connectedFetch, errorOf } from "../api/index.ts";
import { lost } from "../connection/state.ts";

/** Status of a response without content. */
const NO_CONTENT = 204;

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

/**
 * Delay before a page reads a conversation again whose active run had no stream. It doubles each
 * time.
 */
const FIRST_PAUSE_MS = 300;

/** Maximum of that delay. */
const LONGEST_PAUSE_MS = 5_000;

/** Joins the active runs of a chat. */
export interface Joining {
  /** The `fetch` of the chat's transport. */
  fetch: typeof streamFetch;
  /**
   * Reads the conversation again. It is called some time after a request for a stream got none: the
   * run has ended since the page read the conversation, or has not continued yet.
   */
  refresh: { current: () => Promise<void> };
}

/** Retries to join active runs, until the page has a stream or is closed. */
export function useJoining(): Joining {
  const refresh = useRef(async () => {});
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const pause = useRef(FIRST_PAUSE_MS);
  useEffect(() => () => clearTimeout(timer.current), []);
  const fetch = useCallback(async (input: RequestInfo | URL, init?: RequestInit) => {
    const response = await streamFetch(input, init);
    clearTimeout(timer.current);
    if (response.status !== NO_CONTENT) {
      pause.current = FIRST_PAUSE_MS;
      return response;
    }
    timer.current = setTimeout(() => void refresh.current(), pause.current);
    pause.current = Math.min(2 * pause.current, LONGEST_PAUSE_MS);
    return response;
  }, []);
  return useMemo(() => ({ fetch, refresh }), [fetch]);
}

/** The fields of a message of the AI SDK that are used here. */
interface Message {
  role: string;
  parts: readonly { type: string; text?: unknown }[];
}

/** Returns the text of a message, without its other parts. */
export function textOf({ parts }: Message): string {
  return parts.map(({ type, text }) => (type === "text" ? text : "")).join("");
}

/** Returns the messages without the last one, if that is this text of the user. */
export function withoutLast<M extends Message>(messages: M[], text: string): M[] {
  const last = messages.at(-1);
  return last?.role === "user" && textOf(last) === text ? messages.slice(0, -1) : messages;
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
