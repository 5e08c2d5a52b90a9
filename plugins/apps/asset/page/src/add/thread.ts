// Thread of a round. Its id is all that the page stores, so that a reload continues with it.
import { useTabs } from "@wattle/page";
import { useRef } from "react";

const KEY = "wattle-asset-thread";

/** Channel on which a tab posts the id of a thread that it has stored or dropped. */
const CHANNEL = "wattle-asset";

/** Returns the id of the thread whose review is pending. */
export function savedThread(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

function saveThread(threadId: string): void {
  try {
    localStorage.setItem(KEY, threadId);
  } catch {
    // Without storage a reload starts over.
  }
}

/** Removes the saved id if it is that of the thread. Another tab may have saved its own since. */
function removeThread(threadId: string): void {
  try {
    if (savedThread() === threadId) localStorage.removeItem(KEY);
  } catch {
    // Without storage no id is saved.
  }
}

/** The thread that this tab parses or shows. */
export type OwnThread = ReturnType<typeof useOwnThread>;

/**
 * Returns the own thread. Calls `onEnded` when another tab has stored or dropped it. The threads of
 * other tabs are not followed, although all tabs save their ids in the same place.
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
