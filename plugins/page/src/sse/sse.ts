// A stream of events that continues after a lost connection.
import { createParser } from "eventsource-parser";
import { ApiError, address, connectedFetch, errorOf } from "../api/index.ts";
import { connected, lost } from "../connection/state.ts";
import { texts } from "../language/language.ts";

export interface ServerEvent {
  /** Name of the event; `message` if it has none. */
  event: string;
  data: string;
  /** The last id that was received, if any. */
  id: string | undefined;
}

export interface StreamOptions {
  method?: "GET" | "POST";
  /** Sent as JSON with the first request. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  onEvent: (event: ServerEvent) => void;
  /**
   * Called with each response, such as for a header with the URL at which the stream can be joined.
   */
  onOpen?: (response: Response) => void;
  /** Returns true for the last event. Without it, the end of the response is the end. */
  isEnd?: (event: ServerEvent) => boolean;
  /**
   * Returns the path at which a cut stream is joined, by a GET with `Last-Event-ID`. Without it,
   * the first request is sent again if it was a GET. A POST fails, because a second POST would act
   * twice.
   */
  resume?: () => string | undefined;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Maximum number of consecutive attempts without an event. */
const MOST_ATTEMPTS = 8;

interface Progress {
  lastId: string | undefined;
  pauseMs: number;
  attempts: number;
  ended: boolean;
}

/** Reads a stream to its end. Fails if it is refused, or cannot be joined after it was cut. */
export async function streamEvents(path: string, options: StreamOptions): Promise<void> {
  const progress: Progress = {
    lastId: undefined,
    pauseMs: FIRST_PAUSE_MS,
    attempts: 0,
    ended: false,
  };
  let target: Target = { path, method: options.method ?? "POST", body: options.body };
  for (;;) {
    const cut = await readOnce(target, options, progress);
    if (cut === undefined) return;
    const next = targetAfterCut(target, options);
    if (next === undefined || progress.attempts >= MOST_ATTEMPTS) throw cut;
    target = next;
    progress.attempts += 1;
    await connected(options.signal);
    await pause(progress.pauseMs, options.signal);
    progress.pauseMs = Math.min(progress.pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

interface Target {
  path: string;
  method: string;
  body: unknown;
}

function targetAfterCut(target: Target, { resume }: StreamOptions): Target | undefined {
  const path = resume?.();
  if (path !== undefined) return { path, method: "GET", body: undefined };
  return target.method === "GET" ? target : undefined;
}

/** Reads one connection. Returns the error that cut it; `undefined` at the end of the stream. */
async function readOnce(
  target: Target,
  options: StreamOptions,
  progress: Progress,
): Promise<ApiError | undefined> {
  try {
    const response = await connectedFetch(address(target.path), init(target, options, progress));
    if (!response.ok) throw await errorOf(response);
    options.onOpen?.(response);
    if (response.status === 204 || response.body === null) return undefined;
    await readBody(response.body, options, progress);
    if (progress.ended || options.isEnd === undefined) return undefined;
    return new ApiError("network", texts().streamCut);
  } catch (error) {
    if (error instanceof ApiError && error.kind === "network") return error;
    throw error;
  }
}

function init(target: Target, options: StreamOptions, { lastId }: Progress): RequestInit {
  const headers: Record<string, string> = { accept: "text/event-stream", ...options.headers };
  const request: RequestInit = { method: target.method, headers, cache: "no-store" };
  if (lastId !== undefined) headers["last-event-id"] = lastId;
  if (options.signal) request.signal = options.signal;
  if (target.body !== undefined) {
    headers["content-type"] = "application/json";
    request.body = JSON.stringify(target.body);
  }
  return request;
}

async function readBody(
  body: ReadableStream<Uint8Array>,
  options: StreamOptions,
  progress: Progress,
): Promise<void> {
  const parser = createParser({
    onRetry: (ms) => {
      progress.pauseMs = ms;
    },
    onEvent: ({ event: name = "message", data, id = progress.lastId }) => {
      const event = { event: name, data, id };
      progress.lastId = id;
      progress.attempts = 0;
      progress.pauseMs = FIRST_PAUSE_MS;
      progress.ended ||= options.isEnd?.(event) ?? false;
      options.onEvent(event);
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw cutBy(error);
    });
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
    if (progress.ended) {
      await reader.cancel();
      return;
    }
  }
}

/** Converts an error of a read. An abort is kept, because the caller itself made it. */
function cutBy(error: unknown): Error {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  lost();
  return new ApiError("network", texts().streamCut);
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
