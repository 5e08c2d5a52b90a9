// The state of the connection to the server, which TanStack Query shares. Nothing is checked while
// requests succeed. After one has failed, the page requests its own entry document until it gets a
// response.
import { onlineManager } from "@tanstack/react-query";

export type Connection = "connected" | "lost";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Statuses of proxies whose server is not reachable, and of a host that is starting. */
const AWAY = [502, 503, 504];

/** Returns true if a response says that the server itself is not reachable yet. */
export function isAway(response: Response): boolean {
  return AWAY.includes(response.status);
}

let timer: ReturnType<typeof setTimeout> | undefined;

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
  clearTimeout(timer);
  timer = undefined;
  onlineManager.setOnline(true);
}

/** Records that a request has not reached the server. */
export function lost(): void {
  onlineManager.setOnline(false);
  if (timer === undefined) ask(FIRST_PAUSE_MS);
}

function ask(pauseMs: number): void {
  timer = setTimeout(async () => {
    const isBack = await isReachable();
    if (onlineManager.isOnline()) return;
    if (isBack) reached();
    else ask(Math.min(pauseMs * 2, LONGEST_PAUSE_MS));
  }, pauseMs);
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
