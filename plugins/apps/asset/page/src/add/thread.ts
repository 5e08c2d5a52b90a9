// Id of the thread of a round, which is all that the page stores. A reload continues with the
// thread.

const KEY = "wattle-asset-thread";

/** Returns the id of the thread whose review is pending. */
export function savedThread(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export function saveThread(threadId: string): void {
  try {
    localStorage.setItem(KEY, threadId);
  } catch {
    // Without storage a reload starts over.
  }
}

/**
 * Removes the saved id. A given id is removed only if it is the saved one, because another tab may
 * have saved the id of its own thread.
 */
export function forgetThread(threadId: string | undefined): void {
  try {
    if (threadId === undefined || savedThread() === threadId) localStorage.removeItem(KEY);
  } catch {
    // Without storage no id is saved.
  }
}

/**
 * Calls `onGone` when another tab has stored or dropped the thread. Returns a function that removes
 * the listener.
 */
export function watchThread(onGone: () => void): () => void {
  const listen = (event: StorageEvent) => {
    if (event.key === KEY && event.newValue === null) onGone();
  };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}
