// Thread of a round. Its id is all that the page stores, so that a reload continues with it.
import { useTabs } from "@wattle/page";
import { useRef } from "react";

/** Key of the tab's own id in `sessionStorage`, and of the id for new tabs in `localStorage`. */
const KEY = "wattle-asset-thread";

/** Own id of a tab whose thread has ended. The tab does not continue the thread of another tab. */
const ENDED = "";

/** Channel on which a tab posts the id of a thread that it has stored or dropped. */
const CHANNEL = "wattle-asset";

/** Returns the id of the thread whose review is pending. A new tab continues that of another tab. */
export function savedThread(): string | undefined {
  try {
    const threadId = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? ENDED;
    return threadId === ENDED ? undefined : threadId;
  } catch {
    return undefined;
  }
}

/** Saves the id for this tab. Saves it for new tabs unless the id of another tab is saved there. */
function saveThread(threadId: string): void {
  try {
    const shared = localStorage.getItem(KEY);
    const isForeign = shared !== null && shared !== sessionStorage.getItem(KEY);
    sessionStorage.setItem(KEY, threadId);
    if (!isForeign) localStorage.setItem(KEY, threadId);
  } catch {
    // Without storage a reload starts over.
  }
}

/** Removes the id where it is saved. The id of another thread stays. */
function removeThread(threadId: string): void {
  try {
    if (sessionStorage.getItem(KEY) === threadId) sessionStorage.setItem(KEY, ENDED);
    if (localStorage.getItem(KEY) === threadId) localStorage.removeItem(KEY);
  } catch {
    // Without storage no id is saved.
  }
}

/** The thread that this tab parses or shows. */
export type OwnThread = ReturnType<typeof useOwnThread>;

/**
 * Returns the own thread. Calls `onEnded` when another tab has stored or dropped it. The threads of
 * other tabs are not followed.
 */
export function useOwnThread(onEnded: () => void) {
  const own = useRef<string>(undefined);
  const tell = useTabs(CHANNEL, (threadId) => {
    if (threadId !== own.current) return;
    // The removal by the other tab may arrive here after its message.
    own.current = undefined;
    removeThread(threadId);
    onEnded();
  });
  /** Makes a thread the own one and saves its id. */
  const keep = (threadId: string) => {
    own.current = threadId;
    saveThread(threadId);
  };
  /** Forgets a thread that cannot be continued. */
  const forget = (threadId: string) => {
    if (own.current === threadId) own.current = undefined;
    removeThread(threadId);
  };
  /** Forgets a thread that is stored or dropped, and notifies the other tabs. */
  const end = (threadId: string) => {
    forget(threadId);
    tell(threadId);
  };
  return { keep, forget, end };
}
