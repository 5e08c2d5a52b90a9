// What is known of a run: its timeline, and whether it still grows. The view reads it as an
// external store, at most once in an animation frame.
import { toError } from "../api/error.ts";
import { type FollowState, follow, isTransient } from "../api/follow.ts";
import { type EventOutline, type RunPlace, readOutlines } from "../api/log.ts";
import { type LogLine, lineOf } from "./log-line.ts";
import { Timeline } from "./timeline.ts";

/** `reading`: the log is read. `failed`: nothing more is read until a user asks for it. */
export type Phase = "reading" | "failed" | FollowState;

/** A state of the store. It is replaced when it changes. */
export interface RunState {
  readonly phase: Phase;
  readonly error: Error | undefined;
  /** Version of the timeline. */
  readonly version: number;
}

/** What each view of a run gets. `version` differs after each event. */
export interface RunViewProps {
  place: RunPlace;
  store: RunStore;
  version: number;
}

/** The timeline of a run and the lines of its log, while it is read and followed. */
export class RunStore {
  readonly timeline: Timeline;
  /** A line for each event, in the order of the log. */
  readonly lines: LogLine[] = [];
  readonly #place: RunPlace;
  readonly #follower: typeof follow;
  readonly #watchers = new Set<() => void>();
  #state: RunState = { phase: "reading", error: undefined, version: 0 };
  /** Ends what is read now. */
  #reading: AbortController | undefined;

  /** Without `follower`, a run that has not ended has a stream. */
  constructor(place: RunPlace, follower = follow) {
    this.#place = place;
    this.#follower = follower;
    this.timeline = new Timeline(place.run);
  }

  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  readonly state = (): RunState => this.#state;

  /** Reads the log from the last known event on, and follows the run to its end. */
  start(): void {
    this.stop();
    const reading = new AbortController();
    this.#reading = reading;
    this.#change("reading");
    void this.#read(reading.signal).catch((error: unknown) => {
      if (reading.signal.aborted) return;
      // The stream is opened again and again, so it also continues what was cut.
      if (isTransient(error)) this.#follow(this.timeline.lastSeq, reading.signal);
      else this.#change("failed", toError(error));
    });
  }

  stop(): void {
    this.#reading?.abort();
    this.#reading = undefined;
  }

  async #read(signal: AbortSignal): Promise<void> {
    let after = this.timeline.lastSeq;
    for (;;) {
      const { run } = this.#place;
      const page = await readOutlines(this.#place, after, { run, signal });
      if (signal.aborted) return;
      this.#apply(page.items);
      if (this.timeline.isOver) return this.#change("over");
      if (page.next === undefined) return this.#follow(page.lastSeq, signal);
      this.#change("reading");
      after = page.next;
    }
  }

  #follow(after: number, signal: AbortSignal): void {
    const stop = this.#follower({
      place: this.#place,
      after,
      onEvents: (batch) => {
        this.#apply(batch);
        this.#change(this.#state.phase);
      },
      onState: (state) => this.#change(state),
      onError: (error) => this.#change("failed", error),
    });
    signal.addEventListener("abort", stop);
  }

  #apply(events: readonly EventOutline[]): void {
    for (const event of events) {
      const { version } = this.timeline;
      this.timeline.apply(event);
      // An event that is known already changes nothing.
      if (this.timeline.version !== version) this.lines.push(lineOf(event));
    }
  }

  #change(phase: Phase, error?: Error): void {
    const { version } = this.timeline;
    const { phase: before, version: known, error: previous } = this.#state;
    if (before === phase && known === version && previous === error) return;
    this.#state = { phase, error, version };
    for (const watcher of [...this.#watchers]) watcher();
  }
}
