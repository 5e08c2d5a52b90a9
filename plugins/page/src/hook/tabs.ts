// Communication with other tabs of the same browser.
import { useCallback, useEffect, useEffectEvent, useRef } from "react";

/**
 * Calls `onNews` with what another tab posts on the channel, and with `undefined` when the user
 * returns to this tab, which covers changes on other machines. Returns the function that posts to
 * the other tabs.
 */
export function useTabs(
  channel: string,
  onNews: (news: string | undefined) => void,
): (news?: string) => void {
  const receive = useEffectEvent(onNews);
  const opened = useRef<BroadcastChannel>(undefined);
  useEffect(() => {
    const channelOfTab = new BroadcastChannel(channel);
    channelOfTab.onmessage = ({ data }: MessageEvent<string>) => receive(data);
    opened.current = channelOfTab;
    return () => {
      channelOfTab.close();
      opened.current = undefined;
    };
  }, [channel]);
  useEffect(() => {
    const seen = () => {
      if (document.visibilityState === "visible") receive(undefined);
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, []);
  return useCallback((news = "") => opened.current?.postMessage(news), []);
}
