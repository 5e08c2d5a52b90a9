// Follows the events of a run while the tab is visible. A browser has few connections to one
// origin, so a hidden tab has none, and a stream ends with its run.
import { ApiError, errorIn, failureOf } from "@wattle/page/api";
import { connected } from "@wattle/page/connection";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { tenantHeaders } from "../access/key.ts";
import { api, ok } from "./client.ts";
import { toError } from "./error.ts";
import type { EventOutline, RunPlace } from "./log.ts";

/** `lost`: the stream was cut, and is opened again. `hidden`: the tab is not visible. */
export type FollowState = "open" | "lost" | "hidden" | "over";

export interface Follow {
  place: RunPlace;
  /** Only events after this sequence number. */
  after: number;
  /** Gets all events since the last animation frame. */
  onEvents: (batch: readonly EventOutline[]) => void;
  onState: (state: FollowState) => void;
  /** Gets a failure after which the run is not followed any more. */
  onError: (error: Error) => void;
}

/** Pauses before the stream is opened again, in milliseconds. Each is twice as long. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Time without a byte after which the connection is dead. The host sends one each 15 seconds. */
const SILENCE_MS = 45_000;

/** The status of a host that gets too many requests. */
const TOO_MANY_REQUESTS = 429;

/** Follows a run to its end, or until the returned function is called. */
export function follow(options: Follow): () => void {
  const follower = new Follower(options);
  follower.start();
  return () => follower.stop();
}

/** Returns true if another attempt can succeed. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  const { kind, status = 0 } = error;
  return kind === "network" || status >= 500 || status === TOO_MANY_REQUESTS;
}

class Follower {
  readonly #options: Follow;
  #after: number;
  #batch: EventOutline[] = [];
  #frame: number | undefined;
  /** Ends the stream that is read now. */
  #reading: AbortController | undefined;
  #isOver = false;

  constructor(options: Follow) {
    this.#options = options;
    this.#after = options.after;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#look);
    this.#look();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#look);
    this.#close();
  }

  readonly #look = (): void => {
    if (document.visibilityState === "hidden") {
      this.#close();
      this.#options.onState("hidden");
    } else if (this.#reading === undefined) {
      void this.#keepReading();
    }
  };

  #close(): void {
    this.#reading?.abort();
    this.#reading = undefined;
    this.#flush();
  }

  /** Reads the stream, and opens it again when it is cut, until the run ends. */
  async #keepReading(): Promise<void> {
    const reading = new AbortController();
    const { signal } = reading;
    this.#reading = reading;
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      const before = this.#after;
      const error = await this.#read(signal).catch(toError);
      if (signal.aborted) return;
      this.#flush();
      if (this.#isOver) return this.#end("over");
      if (error !== undefined && !isTransient(error)) return this.#fail(error);
      this.#options.onState("lost");
      if (this.#after > before) pauseMs = FIRST_PAUSE_MS;
      await pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      await connected();
    }
  }

  #end(state: FollowState): void {
    this.stop();
    this.#options.onState(state);
  }

  #fail(error: Error): void {
    this.stop();
    this.#options.onError(error);
  }

  /** Reads one stream to its end. */
  async #read(signal: AbortSignal): Promise<undefined> {
    const { thread, run, tenant } = this.#options.place;
    const query = { run, after: this.#after, until: "idle", outline: true };
    const body = await ok(
      api.GET("/api/v1/threads/{thread}/events", {
        params: { path: { thread }, query },
        headers: tenantHeaders(tenant),
        parseAs: "stream",
        signal,
      }),
    );
    this.#options.onState("open");
    const parser = createParser({ onEvent: (message) => this.#take(message) });
    const decoder = new TextDecoder();
    for await (const bytes of chunksOf(body)) {
      parser.feed(decoder.decode(bytes, { stream: true }));
      if (this.#isOver || signal.aborted) return;
    }
  }

  #take({ event: name, data }: EventSourceMessage): void {
    const document: unknown = JSON.parse(data);
    if (name === "error") {
      const { status }: { status?: unknown } = Object(document);
      throw errorIn(typeof status === "number" ? status : 500, document);
    }
    const event = document as EventOutline;
    this.#after = event.seq;
    this.#batch.push(event);
    this.#isOver ||= event.type === "run_ended";
    this.#frame ??= requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    const batch = this.#batch;
    this.#batch = [];
    if (batch.length > 0) this.#options.onEvents(batch);
  }
}

/** Returns the chunks of a body. A body that is silent for too long ends. */
async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const silence = setTimeout(() => void reader.cancel(), SILENCE_MS);
      try {
        const { value } = await reader.read();
        if (value === undefined) return;
        yield value;
      } catch (error) {
        throw failureOf(error);
      } finally {
        clearTimeout(silence);
      }
    }
  } finally {
    // The stream may be broken already.
    await reader.cancel().catch(() => undefined);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
