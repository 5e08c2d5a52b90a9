// Other tabs of the same browser.
import { useCallback, useEffect, useRef } from "react";

/** Every tab hears of every conversation: a booking in one shows in the book beside another. */
const CHANNEL = "wattle-expense";

/** Calls `onNews` when another tab has changed this conversation; returns what tells the others. */
export function useTabs(thread: { current: string | undefined }, onNews: () => void): () => void {
  const tell = useNews((changed) => {
    if (changed === undefined || changed === thread.current) onNews();
  });
  return useCallback(() => tell(thread.current), [tell, thread]);
}

/**
 * Calls `onNews` with the conversation that another tab has changed, and with nothing when the user
 * comes back to this one. Returns what tells the other tabs.
 */
export function useNews(
  onNews: (thread: string | undefined) => void,
): (thread: string | undefined) => void {
  const latest = useRef(onNews);
  latest.current = onNews;
  const channel = useRef<BroadcastChannel>(undefined);
  useEffect(() => {
    const opened = new BroadcastChannel(CHANNEL);
    opened.onmessage = ({ data }) => latest.current(typeof data === "string" ? data : undefined);
    channel.current = opened;
    const seen = () => {
      if (document.visibilityState === "visible") latest.current(undefined);
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      opened.close();
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
  return useCallback((thread) => channel.current?.postMessage(thread ?? ""), []);
}
