// Ended runs and threads.

import type { output } from "zod/v4/core";
import { code, Failure } from "../failure.ts";
import { type Extra, fromValue, type Json, type Type } from "../json.ts";
import type { RunRef } from "./request.ts";

/** Status of a thread with an active run. */
const RUNNING = "running";

/** Status of a thread with pending interrupts, or at a breakpoint. */
const INTERRUPTED = "interrupted";

/** A pending interrupt. */
export class Interrupt {
  /** Id of the interrupt. */
  readonly id: string;
  /** Node that raised the interrupt. */
  readonly node: string;
  /** Payload to show to the person. */
  readonly payload: Json;
  /** JSON Schema for the answer. */
  readonly responseSchema: Json | undefined;
  /** Time at which the interrupt was raised, in milliseconds since 1970. */
  readonly askedMs: number;
  /**
   * Time at which the thread expires if the interrupt is still pending, in milliseconds since 1970.
   */
  readonly expiresMs: number | undefined;

  /** Creates an interrupt. */
  constructor(
    id: string,
    node: string,
    payload: Json,
    more: {
      responseSchema?: Json | undefined;
      askedMs?: number;
      expiresMs?: number | undefined;
    } = {},
  ) {
    this.id = id;
    this.node = node;
    this.payload = payload;
    this.responseSchema = more.responseSchema;
    this.askedMs = more.askedMs ?? 0;
    this.expiresMs = more.expiresMs;
  }
}

/** The outcome of a run that has ended or is interrupted. */
export type Outcome =
  /** The run completed. */
  | { type: "completed" }
  /** The run is interrupted. Contains the pending interrupts. */
  | { type: "interrupted"; interrupts: Interrupt[] }
  /** The run failed. */
  | { type: "failed"; failure: Failure }
  /** The run was cancelled. */
  | { type: "cancelled" }
  /** An outcome unknown to this SDK version. */
  | { type: "other"; value: string };

/** The fields of an {@link EndedRun}. */
export interface EndedRunFields {
  /** Reference to the run. */
  run: RunRef;
  /** Outcome of the run. */
  outcome: Outcome;
  /** State of the thread, an object of channel values; empty by default. */
  state?: Json;
}

/** A run that has ended or is interrupted. */
export class EndedRun implements EndedRunFields {
  readonly run: RunRef;
  readonly outcome: Outcome;
  readonly state: Json;

  /** Creates an ended run. */
  constructor({ run, outcome, state = {} }: EndedRunFields) {
    this.run = run;
    this.outcome = outcome;
    this.state = state;
  }

  /**
   * Returns the state of a completed run.
   *
   * @throws The failure of a failed run; `cancelled` if the run was cancelled; `conflict` if it is
   * interrupted.
   */
  completed(): Json {
    if (this.outcome.type === "completed") return this.state;
    if (this.outcome.type === "interrupted") throw Failure.conflict("the run is interrupted");
    throw failureOf(this.outcome);
  }

  /**
   * Returns the first pending interrupt of an interrupted run.
   *
   * @throws The failure of a failed run; `cancelled` if the run was cancelled; `conflict` if no
   * interrupt is pending.
   */
  question(): Interrupt {
    const { outcome } = this;
    const question = outcome.type === "interrupted" ? outcome.interrupts[0] : undefined;
    if (question !== undefined) return question;
    if (outcome.type === "completed" || outcome.type === "interrupted") {
      throw Failure.conflict("the run has no pending interrupt");
    }
    throw failureOf(outcome);
  }

  /** Returns a channel of the state as a type, or `undefined` if it is missing or null. */
  channel<T extends Type>(name: string, type: T): output<T> | undefined {
    return channelOf(this.state, name, type);
  }
}

/** The fields of a {@link Thread}. */
export interface ThreadFields {
  /** Id of the thread. */
  threadId: string;
  /** Name of the graph. */
  graph: string;
  /** `idle`, `running`, `interrupted` or `error`. */
  status: string;
  /** State, an object of channel values. */
  state: Json;
  /** Pending interrupts. */
  interrupts: Interrupt[];
  /** Id of the newest run. */
  runId: string | undefined;
  /** Time of creation, in milliseconds since 1970. */
  createdMs: number;
  /** Time of the last change, in milliseconds since 1970. */
  updatedMs: number;
  /** Metadata of the thread. */
  metadata: Json;
  /** Extension fields. */
  extra: Extra;
}

/** A thread. */
export class Thread implements ThreadFields {
  readonly threadId: string;
  readonly graph: string;
  readonly status: string;
  readonly state: Json;
  readonly interrupts: Interrupt[];
  readonly runId: string | undefined;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly metadata: Json;
  readonly extra: Extra;

  /** Creates a thread. */
  constructor(fields: Partial<ThreadFields> & Pick<ThreadFields, "threadId" | "graph">) {
    this.threadId = fields.threadId;
    this.graph = fields.graph;
    this.status = fields.status ?? "idle";
    this.state = fields.state ?? {};
    this.interrupts = fields.interrupts ?? [];
    this.runId = fields.runId;
    this.createdMs = fields.createdMs ?? 0;
    this.updatedMs = fields.updatedMs ?? 0;
    this.metadata = fields.metadata ?? {};
    this.extra = fields.extra ?? {};
  }

  /** Returns true if a run of the thread is active. */
  isRunning(): boolean {
    return this.status === RUNNING;
  }

  /** Returns true if the thread has pending interrupts, or is at a breakpoint. */
  isInterrupted(): boolean {
    return this.status === INTERRUPTED;
  }

  /** Returns the active run. */
  activeRun(): RunRef | undefined {
    const { threadId, runId } = this;
    return this.isRunning() && runId !== undefined ? { threadId, runId } : undefined;
  }

  /** Returns a channel of the state as a type, or `undefined` if it is missing or null. */
  channel<T extends Type>(name: string, type: T): output<T> | undefined {
    return channelOf(this.state, name, type);
  }
}

function channelOf<T extends Type>(state: Json, name: string, type: T): output<T> | undefined {
  const channels = typeof state === "object" && state !== null ? (state as Extra) : {};
  const value = Object.hasOwn(channels, name) ? channels[name] : null;
  if (value === null || value === undefined) return undefined;
  return fromValue(`channel \`${name}\``, value, type);
}

function failureOf(outcome: Outcome): Failure {
  if (outcome.type === "failed") return outcome.failure;
  if (outcome.type === "cancelled") return new Failure(code.CANCELLED, "the run was cancelled");
  return Failure.internal(`the run has the unknown outcome ${JSON.stringify(outcome)}`);
}
