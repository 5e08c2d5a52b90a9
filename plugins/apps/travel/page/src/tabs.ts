// Other tabs of the same browser on the same session.
import { useCallback, useEffect, useRef } from "react";

/** Calls `onNews` when another tab has changed the session, and returns what tells the others. */
export function useTabs(id: string, onNews: () => void): () => void {
  const latest = useRef(onNews);
  latest.current = onNews;
  const channel = useRef<BroadcastChannel>(undefined);
  useEffect(() => {
    const opened = new BroadcastChannel(`wattle-travel-${id}`);
    opened.onmessage = () => latest.current();
    channel.current = opened;
    return () => opened.close();
  }, [id]);
  // What changed elsewhere, on another machine for example, is seen when the user comes back.
  useEffect(() => {
    const seen = () => {
      if (document.visibilityState === "visible") latest.current();
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);
  return useCallback(() => channel.current?.postMessage("changed"), []);
}
