// Logs of runs for tests, as the host writes them.
import type { EventOutline } from "../../src/api/log.ts";
import { Timeline } from "../../src/run/timeline.ts";

export const RUN = "r1";

/** Time of the first event, and between two events, in milliseconds. */
const START_MS = 1_000_000;
const BETWEEN_MS = 10;

/** An event without the fields that all have. */
export type Kind = { type: EventOutline["type"]; [field: string]: unknown };

/** Returns the events with their numbers and times. */
export function log(...kinds: readonly Kind[]): EventOutline[] {
  return logFrom(1, ...kinds);
}

/** Returns events that continue a log. */
export function logFrom(first: number, ...kinds: readonly Kind[]): EventOutline[] {
  return kinds.map((kind, index) => {
    const seq = first + index;
    const event: unknown = { seq, at_ms: START_MS + seq * BETWEEN_MS, run: RUN, ...kind };
    return event as EventOutline;
  });
}

/** Returns the timeline of events. */
export function timelineOf(events: readonly EventOutline[]): Timeline {
  const timeline = new Timeline(RUN);
  for (const event of events) timeline.apply(event);
  return timeline;
}

/** Returns the rows as lines: indent, kind, name and status. */
export function outline(timeline: Timeline, collapsed?: ReadonlySet<string>): string[] {
  return timeline.rows(collapsed).map(({ depth, kind, label, number, status }) => {
    const named = kind === "step" || kind === "attempt" ? `${kind} ${number}` : `${kind} ${label}`;
    return `${"  ".repeat(depth)}${named} ${status}`;
  });
}

export const runStarted = (reason = "input"): Kind => ({
  type: "run_started",
  graph: "chat",
  digest: "ab".repeat(32),
  reason,
});

export const runEnded = (status = "completed", more: object = {}): Kind => ({
  type: "run_ended",
  status,
  ...more,
});

export const taskStarted = (task: string, step = 0, attempt = 1, more: object = {}): Kind => ({
  type: "task_started",
  task,
  node: `node-${task}`,
  step,
  attempt,
  ...more,
});

export const taskFinished = (task: string, more: object = {}): Kind => ({
  type: "task_finished",
  task,
  node: `node-${task}`,
  index: 0,
  base: 1,
  written: [{ channel: "messages", bytes: 20 }],
  duration_us: 50_000,
  ...more,
});

export const taskFailed = (task: string, attempt = 1): Kind => ({
  type: "task_failed",
  task,
  node: `node-${task}`,
  attempt,
  fault: "failure",
  failure: { code: "unavailable", message: "gone" },
  retry_in_ms: 100,
});

export const callStarted = (task: string, call: number, more: object = {}): Kind => ({
  type: "call_started",
  task,
  call,
  function: "llm.complete",
  summary: "chat (small)",
  ...more,
});

export const called = (task: string, call: number, more: object = {}): Kind => ({
  type: "called",
  task,
  node: `node-${task}`,
  call,
  batch: call,
  function: "http.send",
  digest: "cd".repeat(32),
  summary: "GET /",
  started_ms: START_MS,
  duration_us: 5_000,
  request_bytes: 100,
  result_bytes: 200,
  result_digest: "ef".repeat(32),
  ok: true,
  ...more,
});

export const streamed = (task: string, call: number, ...deltas: object[]): Kind => ({
  type: "streamed",
  task,
  node: `node-${task}`,
  call,
  deltas,
});

export const text = (text: string) => ({ kind: "text", text });

export const checkpointed = (step: number, more: object = {}): Kind => ({
  type: "checkpointed",
  checkpoint: step + 1,
  step,
  source: "loop",
  changed: ["messages"],
  next: [],
  ...more,
});

/** Returns the log of a run with one task that makes so many calls. */
export function manyCalls(count: number): EventOutline[] {
  const calls = Array.from({ length: count }, (_, call) => called("t1", call));
  return log(runStarted(), taskStarted("t1"), ...calls, taskFinished("t1"), runEnded());
}
