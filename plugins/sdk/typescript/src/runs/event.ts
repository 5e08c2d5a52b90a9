// Events of a thread as types. They have the fields of the host's event stream.

import { Failure, settled } from "../failure.ts";
import type { Extra, Json } from "../json.ts";
import type { Completion } from "../llm/completion.ts";
import { readCompletion } from "../llm/logged.ts";

/** What all events have. */
export interface EventBase {
  /** Sequence number in the log, from 1 without gaps. */
  seq: number;
  /** Time in milliseconds since 1970, from the clock of the host. */
  at_ms: number;
  /** Id of the run that the event belongs to. */
  run: string;
  /** Namespace of the subgraph; empty or missing for the root graph. */
  namespace?: string;
}

/** A run started, or continued after an answer or a restart of the host. */
export interface RunStarted extends EventBase {
  type: "run_started";
  /** Name of the graph. */
  graph: string;
  /** `input`, `resume`, `recovery`, `retry` or `fork`. */
  reason: string;
}

/** A run ended or was interrupted. */
export interface RunEnded extends EventBase {
  type: "run_ended";
  /** Run status: `completed`, `interrupted`, `failed` or `cancelled`. */
  status: string;
  /** Failure of a failed run, see {@link Failure.read}. */
  failure?: Json;
}

/** A task finished. */
export interface TaskFinished extends EventBase {
  type: "task_finished";
  /** Id of the task. */
  task: string;
  /** Node of the task. */
  node: string;
  /** Writes of the task, in order. */
  writes: Array<{ channel: string; value: Json }>;
}

/** A potentially slow host call started (model, HTTP, SQL, tool). */
export interface CallStarted extends EventBase {
  type: "call_started";
  /** Id of the task. */
  task: string;
  /**
   * Scope of the call: empty for a call of the node itself, `[n]` for calls within the tool that the
   * node called with its call number `n`.
   */
  scope?: number[];
  /** Number of the call in its scope. */
  call: number;
  /** Function that is called, as interface and name, see {@link isModelCall}. */
  function: string;
  /** Summary in one line; for a tool call, the name of the tool. */
  summary: string;
}

/** A delta of a completion. A restart discards the deltas of the call so far. */
export type Delta =
  | { kind: "text"; text: string }
  | { kind: "reasoning"; text: string }
  | { kind: "restart" }
  | { kind: "tool_call"; index: number; id?: string; name?: string; arguments?: string };

/** Deltas of a completion arrived. */
export interface Streamed extends EventBase {
  type: "streamed";
  /** Id of the task. */
  task: string;
  /** Node of the task. */
  node: string;
  /** See {@link CallStarted.scope}. */
  scope?: number[];
  /** Number of the model call in its scope. */
  call: number;
  /** The deltas, in order. Those of other kinds are unknown to this SDK version. */
  deltas: Delta[];
}

/** A host call returned an output or failed. */
export interface Called extends EventBase {
  type: "called";
  /** Id of the task. */
  task: string;
  /** Node of the task. */
  node: string;
  /** See {@link CallStarted.scope}. */
  scope?: number[];
  /** Number of the call in its scope. */
  call: number;
  /** Function that was called, as interface and name. */
  function: string;
  /**
   * The request. If it is large, only its beginning. A model request with a long history has
   * `history` in place of the messages that the host adds.
   */
  request: Json;
  /** The output or the failure, see {@link completionOf}. */
  result: { Ok: Json } | { Err: Json };
  /** Duration in microseconds. */
  duration_us: number;
  /** Summary in one line; for a tool call, the name of the tool. */
  summary?: string;
}

/** A node emitted a custom event. */
export interface Custom extends EventBase {
  type: "custom";
  /** Node that emitted the event. */
  node: string;
  /** Name of the event. */
  name: string;
  /** Data of the event. */
  data: Json;
}

/** An event that this SDK version has no type for. */
export interface OtherEvent extends EventBase {
  type: "other";
  /** The event as the host wrote it. */
  event: Json;
}

/** An event of a thread. */
export type Event =
  | RunStarted
  | RunEnded
  | TaskFinished
  | CallStarted
  | Streamed
  | Called
  | Custom
  | OtherEvent;

/** The fields that each known event must have, with the results of `typeof`. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  run_started: { graph: "string", reason: "string" },
  run_ended: { status: "string" },
  task_finished: { task: "string", node: "string", writes: "object" },
  call_started: { task: "string", call: "number", function: "string", summary: "string" },
  streamed: { task: "string", node: "string", call: "number", deltas: "object" },
  called: { task: "string", node: "string", call: "number", function: "string", result: "object" },
  custom: { node: "string", name: "string" },
};

const BASE = { seq: "number", at_ms: "number", run: "string", type: "string" };

/**
 * Gives an event a type.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 *
 * const event = runs.readEvent({
 *   seq: 4, at_ms: 1_700_000_000_000, run: "r", type: "call_started",
 *   task: "t", call: 0, function: "tools.call", summary: "asset/lookup",
 * });
 * assert.ok(event.type === "call_started" && runs.isToolCall(event.function));
 * ```
 *
 * @throws `invalid` if the value is not an event.
 */
export function readEvent(event: Json): Event {
  const fields = typeof event === "object" && event !== null ? (event as Extra) : {};
  check(fields, BASE);
  const type = String(fields.type);
  if (!Object.hasOwn(FIELDS, type)) {
    const { seq, at_ms, run, namespace } = fields as unknown as EventBase;
    const base = { seq, at_ms, run, ...(namespace === undefined ? {} : { namespace }) };
    return { ...base, type: "other", event };
  }
  check(fields, FIELDS[type] ?? {});
  return fields as unknown as Event;
}

function check(fields: Extra, types: Readonly<Record<string, string>>): void {
  for (const [name, type] of Object.entries(types)) {
    const value = fields[name];
    if (typeof value === type && value !== null) continue;
    const found = value === undefined ? "missing" : JSON.stringify(value);
    throw Failure.invalid(`event is invalid at \`${name}\`: it is ${found}, expected ${type}`, {
      details: { path: name },
    });
  }
}

/** Returns true if a function of {@link CallStarted} or {@link Called} is a model call. */
export function isModelCall(name: string): boolean {
  return name === "llm.complete" || name === "llm.stream";
}

/**
 * Returns the completion of a model call. Returns `undefined` for another call, for a call that failed,
 * and for an output that is not the JSON of a completion.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 *
 * const event = runs.readEvent({
 *   seq: 5, at_ms: 1_700_000_000_000, run: "r", type: "called",
 *   task: "t", node: "n", call: 0, function: "llm.complete", request: { route: "chat" },
 *   result: { Ok: { parts: [{ text: "hello" }], model: "small" } }, duration_us: 7,
 * });
 * assert.ok(event.type === "called");
 * assert.equal(runs.completionOf(event)?.text(), "hello");
 * ```
 */
export function completionOf({ function: name, result }: Called): Completion | undefined {
  if (!isModelCall(name) || !("Ok" in result)) return undefined;
  const read = settled(() => readCompletion(result.Ok));
  return read instanceof Failure ? undefined : read;
}

/** Returns true if a function of {@link CallStarted} or {@link Called} is a tool call. */
export function isToolCall(name: string): boolean {
  return name === "tools.call";
}
