// Communication with other tabs of the same browser.
import { useCallback, useEffect, useEffectEvent, useRef } from "react";

/**
 * Calls `onNews` with what another tab posts on the channel. Returns the function that posts to the
 * other tabs.
 */
export function useTabs(channel: string, onNews: (news: string) => void): (news?: string) => void {
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
  return useCallback((news = "") => opened.current?.postMessage(news), []);
}
