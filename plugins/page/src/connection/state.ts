// The state of the connection to the server, which TanStack Query shares. Nothing is checked while
// requests succeed. After one has failed, the page requests its own entry document until it gets a
// response.
import { onlineManager } from "@tanstack/react-query";

export type Connection = "connected" | "lost";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Statuses of proxies whose server is not reachable, and of a host that is starting. */
const AWAY = [502, 503, 504];

/** Returns true if a response, or its error, says that the server itself is not reachable yet. */
export function isAway({ status = 0 }: { status?: number | undefined }): boolean {
  return AWAY.includes(status);
}

let timer: ReturnType<typeof setTimeout> | undefined;

/** The pause before the next request of the entry document. */
let pauseMs = FIRST_PAUSE_MS;

/** When the server last responded to a request of the entry document. */
let respondedMs = 0;

// Browsers know that they are offline, but not whether the server is reachable.
onlineManager.setEventListener(() => {
  addEventListener("offline", lost);
  return () => removeEventListener("offline", lost);
});

export function connection(): Connection {
  return onlineManager.isOnline() ? "connected" : "lost";
}

/** Records that a request has reached the server. */
export function reached(): void {
  pauseMs = FIRST_PAUSE_MS;
  restore();
}

function restore(): void {
  clearTimeout(timer);
  timer = undefined;
  onlineManager.setOnline(true);
}

/** Records that a request has not reached the server. */
export function lost(): void {
  onlineManager.setOnline(false);
  if (timer !== undefined) return;
  // A server that was reachable for as long as the next pause has become unreachable anew.
  if (Date.now() - respondedMs >= pauseMs) pauseMs = FIRST_PAUSE_MS;
  ask();
}

function ask(): void {
  timer = setTimeout(async () => {
    const isBack = await isReachable();
    if (onlineManager.isOnline()) return;
    // A server that serves its pages may not be ready for other requests. The pauses grow until it
    // has responded to one of these, or until none has failed for the next pause.
    if (isBack) {
      respondedMs = Date.now();
      restore();
    } else {
      ask();
    }
  }, pauseMs);
  pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
}

async function isReachable(): Promise<boolean> {
  try {
    const response = await fetch(document.baseURI, { method: "GET", cache: "no-store" });
    return !isAway(response);
  } catch {
    return false;
  }
}

/** Resolves when the server is reachable, immediately if it is. */
export async function connected(): Promise<void> {
  if (onlineManager.isOnline()) return;
  await new Promise<void>((resolve) => {
    const stop = onlineManager.subscribe((isOnline) => {
      if (!isOnline) return;
      stop();
      resolve();
    });
  });
}
