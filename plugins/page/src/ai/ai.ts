// Chats with the AI SDK.
import "./jitless.ts";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { NO_CONTENT, streamFetch } from "./fetch.ts";

export {
  type ChatHelpers,
  type ChatOptions,
  type StoredChat,
  type Unsent,
  useChat,
} from "./chat.ts";
export { textOf, withoutLast } from "./message.ts";

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
