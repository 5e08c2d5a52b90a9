// Whether the server can be reached. Nothing is asked as long as requests come through; after one
// that did not, the page asks for its own entry document until it gets an answer.

export type Connection = "connected" | "lost";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Statuses of proxies whose server is away, and of a host that starts. */
const AWAY = [502, 503, 504];

/** Whether an answer says that the server itself cannot be reached yet. */
export function isAway(response: Response): boolean {
  return AWAY.includes(response.status);
}

let state: Connection = "connected";
let timer: ReturnType<typeof setTimeout> | undefined;
const watchers = new Set<() => void>();

export function connection(): Connection {
  return state;
}

/** Calls `watcher` at each change; returns what ends that. */
export function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** A request came through. */
export function reached(): void {
  clearTimeout(timer);
  timer = undefined;
  change("connected");
}

/** A request did not come through. */
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

/** Resolves when the server can be reached, at once if it can. */
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
