// The one thing that the page keeps of a round: the id of its thread. A reload goes on with it.

const KEY = "wattle-asset-thread";

/** The thread that waits to be confirmed. */
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

/** Forgets the thread, unless another tab has begun another one. */
export function forgetThread(threadId: string | undefined): void {
  try {
    if (threadId === undefined || savedThread() === threadId) localStorage.removeItem(KEY);
  } catch {
    // There is nothing to forget.
  }
}

/** Calls back when another tab has finished or dropped the thread. */
export function watchThread(onGone: () => void): () => void {
  const listen = (event: StorageEvent) => {
    if (event.key === KEY && event.newValue === null) onGone();
  };
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}
