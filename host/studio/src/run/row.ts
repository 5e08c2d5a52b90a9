// The rows of a timeline: what a run did, as a tree that is shown line by line.

/** What a row stands for. */
export type RowKind =
  | "step"
  | "graph"
  | "task"
  | "attempt"
  | "call"
  | "interrupt"
  | "message"
  | "change";

/** Returns false for what happens at once, and so has no state. */
export function hasState(kind: RowKind): boolean {
  return kind !== "message" && kind !== "change";
}

/**
 * The state of a row. `replayed`: a call whose result an earlier attempt has received. `reused`: a
 * result of another run. `cached`: a task that was not executed. `lost`: it was cut before its end.
 */
export type RowStatus =
  | "running"
  | "done"
  | "failed"
  | "asked"
  | "replayed"
  | "reused"
  | "cached"
  | "lost";

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

/** Where the task of a call started. The calls of a task share it. */
export interface TaskStart {
  /** Number of the checkpoint; `undefined` if the events do not tell it. */
  base: number | undefined;
}

/** What only host calls have. */
export interface CallFacts {
  readonly task: string;
  readonly start: Readonly<TaskStart>;
  /** Numbers of the enclosing tool calls. */
  readonly scope: readonly number[];
  /** Number of the call in its scope. */
  readonly call: number;
  readonly function: string;
  readonly summary: string;
  readonly model: string | undefined;
  readonly provider: string | undefined;
  /** Number of requests to models. */
  readonly tries: number | undefined;
  /** Sizes as JSON; `undefined` if they are not known. */
  readonly requestBytes: number | undefined;
  readonly resultBytes: number | undefined;
  /** Digests of the whole request and of the result; `undefined` until the call has returned. */
  readonly requestDigest: string | undefined;
  readonly resultDigest: string | undefined;
  readonly tokens: Tokens | undefined;
  /** Time for which the call waited for the store before its start, in microseconds. */
  readonly storeUs: number;
  /** Cost of the tokens; `undefined` if the model has no price. */
  readonly cost: number | undefined;
  /** Sequence number of the journal entry whose result was reused. */
  readonly reused: number | undefined;
  /** What a model has streamed so far: text, reasoning, and the tool calls that it asks for. */
  readonly text: string;
  readonly reasoning: string;
  readonly asks: readonly Ask[];
}

/** A tool call that a model asks for. */
export interface Ask {
  readonly name: string;
  /** JSON text, which may be incomplete. */
  readonly arguments: string;
}

/** A row. It is replaced when it changes; `call` is shared by the rows of a call. */
export interface Row {
  /** Differs for each row, and is the same after each reading of the log. */
  readonly id: string;
  /** Sequence number of the event that says most about the row. */
  readonly seq: number;
  readonly kind: RowKind;
  readonly depth: number;
  readonly parent: string | null;
  /** Name of a node, function or namespace; the type of a message or change. */
  readonly label: string;
  /**
   * Number of a superstep, attempt or call. Of a task that has finished, its index among the tasks
   * of its node.
   */
  readonly number: number | undefined;
  /** Node of a task, and of what is in it. */
  readonly node: string | undefined;
  readonly namespace: string;
  readonly status: RowStatus;
  readonly startMs: number;
  readonly durationUs: number | undefined;
  /** A text about the row: a summary, a message, the channels of a checkpoint. */
  readonly detail: string;
  /** Code of a failure. */
  readonly code: string | undefined;
  /** Number of calls of an attempt that were replayed. */
  readonly replayed: number;
  readonly call: CallFacts | undefined;
  readonly childCount: number;
  readonly isOpen: boolean;
}
