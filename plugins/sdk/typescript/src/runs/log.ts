// The log of a thread: all of its events, and those of each run.

import { code, Failure, hasCode } from "../failure.ts";
import type { Json } from "../json.ts";
import { type Event, type RunEnded, readEvent } from "./event.ts";
import { events, PAGE_EVENTS } from "./request.ts";

/** The events of one run, see {@link byRun}. */
export class RunLog {
  /** Id of the run. */
  readonly id: string;
  /** Events in order, at least one. */
  readonly events: Event[];

  /** Creates the log of a run. */
  constructor(id: string, events: Event[]) {
    this.id = id;
    this.events = events;
  }

  /** Returns the event that ended the run; `undefined` during the run. */
  ended(): RunEnded | undefined {
    return this.events.findLast((event) => event.type === "run_ended");
  }
}

/**
 * Returns all events of a thread after a sequence number, or `undefined` if there is no such thread.
 * `read` converts each event. {@link readEvent} keeps all of its content; a function of the app can
 * omit large requests and outputs that the app does not use.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost()
 *   .event("t", { seq: 1, at_ms: 5, run: "r", type: "run_started", graph: "notes", reason: "input" })
 *   .event("t", { seq: 2, at_ms: 5, run: "r", type: "run_ended", status: "completed" });
 * const [log] = runs.byRun(host.run(() => runs.allEvents("t")) ?? []);
 * assert.equal(log?.id, "r");
 * assert.equal(log?.ended()?.status, "completed");
 * ```
 */
export function allEvents(
  threadId: string,
  after = 0,
  read: (event: Json) => Event = readEvent,
): Event[] | undefined {
  const all: Event[] = [];
  let seen = after;
  for (;;) {
    const page = pageAfter(threadId, seen);
    if (page === undefined) return undefined;
    if (page.length === 0) return all;
    for (const event of page) {
      seen = numberOf(event);
      all.push(read(event));
    }
  }
}

function pageAfter(threadId: string, after: number): Json[] | undefined {
  try {
    return events(threadId, after, PAGE_EVENTS);
  } catch (error) {
    if (hasCode(error, code.NOT_FOUND)) return undefined;
    throw error;
  }
}

/** Returns the sequence number of an event. */
function numberOf(event: Json): number {
  const isObject = typeof event === "object" && event !== null && !Array.isArray(event);
  const seq = isObject ? event.seq : undefined;
  if (typeof seq === "number") return seq;
  throw Failure.invalid("the number of an event is invalid: expected number");
}

/**
 * Groups consecutive events of a run, in the order of the log. A run whose events are interrupted by
 * those of another one has several groups.
 */
export function byRun(events: readonly Event[]): RunLog[] {
  const logs: RunLog[] = [];
  for (const event of events) {
    const last = logs.at(-1);
    if (last?.id === event.run) last.events.push(event);
    else logs.push(new RunLog(event.run, [event]));
  }
  return logs;
}
