// The state of the connection to the server. Nothing is checked while requests succeed. After one
// has failed, the page requests its own entry document until it gets a response.

export type Connection = "connected" | "lost";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Statuses of proxies whose server is not reachable, and of a host that is starting. */
const AWAY = [502, 503, 504];

/** Returns true if a response says that the server itself is not reachable yet. */
export function isAway(response: Response): boolean {
  return AWAY.includes(response.status);
}

let state: Connection = "connected";
let timer: ReturnType<typeof setTimeout> | undefined;
const watchers = new Set<() => void>();

export function connection(): Connection {
  return state;
}

/** Calls `watcher` at each change. Returns the function that ends this. */
export function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Records that a request has reached the server. */
export function reached(): void {
  clearTimeout(timer);
  timer = undefined;
  change("connected");
}

/** Records that a request has not reached the server. */
export function lost(): void {
  change("lost");
  if (timer === undefined) ask(FIRST_PAUSE_MS);
}

function ask(pauseMs: number): void {
  timer = setTimeout(async () => {
    const isBack = await isReachable();
    if (state === "connected") return;
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

function change(next: Connection): void {
  if (state === next) return;
  state = next;
  for (const watcher of [...watchers]) watcher();
}

/** Resolves when the server is reachable, immediately if it is. */
export function connected(signal?: AbortSignal): Promise<void> {
  if (state === "connected") return Promise.resolve();
  return new Promise((resolve, reject) => {
    const stop = watch(() => {
      if (state !== "connected") return;
      stop();
      resolve();
    });
    signal?.addEventListener("abort", () => {
      stop();
      reject(signal.reason);
    });
  });
}
