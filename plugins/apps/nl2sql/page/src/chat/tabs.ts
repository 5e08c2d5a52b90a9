// Tabs of one browser tell each other which session has changed.
import { useEffect, useRef } from "react";

const CHANNEL = "wattle-nl2sql";

const channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(CHANNEL);

/** Tells other tabs that a session has changed. */
export function announce(session: string): void {
  channel?.postMessage(session);
}

/** Hears of sessions that other tabs have changed. */
export function useOtherTabs(onChange: (session: string) => void): void {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    const heard = ({ data }: MessageEvent<string>) => latest.current(data);
    channel?.addEventListener("message", heard);
    return () => channel?.removeEventListener("message", heard);
  }, []);
}
