// The tool calls of a run, from the log of its thread.

import { Failure } from "../failure.ts";
import { fieldsOf, type Json } from "../json.ts";
import type { Called, CallStarted, Event, RunEnded } from "../runs/index.ts";
import { type Agent, beginsStep, endsStep, writtenMessages } from "./agent.ts";
import { callsOf, type StoredCall, textOf } from "./stored.ts";

/** Error of a step that was cancelled. */
export const CANCELLED = "the step was cancelled";

/** Error of a step whose run failed. */
const LOST = "the run ended before the step was finished";

/** The status of a step. */
export type StepStatus =
  /** The tool is running. */
  | "RUNNING"
  /** The tool succeeded. */
  | "SUCCESS"
  /** The tool failed. */
  | "ERROR"
  /** The run was cancelled. */
  | "CANCELLED";

/** A write of a tool to the state. */
export interface Write {
  /** Name of the channel. */
  channel: string;
  /** The written value. */
  value: Json;
}

/** A tool call of a run. */
export class Step {
  /**
   * Unique in its thread: task and number of the call, or for a refused one the run and the id that the
   * model gave the call.
   */
  readonly id: string;
  /** Name of the tool, without the app or plugin. */
  readonly tool: string;
  /** Id that the model gave the call. */
  readonly callId: string | undefined;
  /** The status. */
  status: StepStatus = "RUNNING";
  /**
   * True if no tool executed the call, because its arguments are unreadable, or because there is no
   * such tool.
   */
  isRefused = false;
  /** Arguments of the call. */
  readonly input: Json | undefined;
  /** Structured output of the tool, or its text without one. */
  output: Json | undefined;
  /** Error message of a step that has failed or was cancelled. */
  error: string | undefined;
  /** Duration in milliseconds. */
  durationMs: number | undefined;
  /** Sequence number of the event that started it. */
  readonly seq: number;
  /** Time of that event, in milliseconds since 1970. */
  readonly startedMs: number;
  /** Sequence number of the event that ended it. */
  endedSeq: number | undefined;
  /** Time of that event, in milliseconds since 1970. */
  endedMs: number | undefined;
  /** Writes of the tool to the state. */
  writes: Write[] = [];

  /** Creates a step that an event has begun. */
  constructor(event: Event, id: string, tool: string, requested: StoredCall | undefined) {
    this.id = id;
    this.tool = tool;
    this.callId = requested?.id;
    this.input = requested?.arguments;
    this.seq = event.seq;
    this.startedMs = event.at_ms;
  }

  /** Returns the sequence number of the event that changed the step last. */
  lastSeq(): number {
    return this.endedSeq ?? this.seq;
  }

  /** Ends the step with an event. */
  end(event: Event, status: StepStatus, error?: string): void {
    this.status = status;
    this.error = error;
    this.endedSeq = event.seq;
    this.endedMs = event.at_ms;
  }
}

/** See {@link Agent.steps}. */
export function stepsOf(agent: Agent, events: readonly Event[]): Step[] {
  const folding = new Folding();
  for (const event of events) {
    if (event.type === "task_finished" && event.node === agent.modelNode) {
      folding.requested = writtenMessages(agent, event).flatMap(callsOf);
    } else if (event.type === "task_finished" && event.node === agent.toolNode) {
      for (const message of writtenMessages(agent, event)) folding.refuse(event, message);
    } else if (event.type === "call_started" && beginsStep(event)) {
      folding.begin(event);
    } else if (event.type === "called" && endsStep(agent, event)) {
      folding.end(event);
    } else if (event.type === "run_ended") {
      folding.endUnfinished(event);
    }
  }
  return folding.steps;
}

class Folding {
  readonly steps: Step[] = [];
  /** Calls that the model requested last and that have no step yet. */
  requested: StoredCall[] = [];
  /** The steps that a tool executes, by their ids. */
  readonly #executed = new Map<string, Step>();

  begin(call: CallStarted): void {
    const id = `${call.task}:${call.call}`;
    // A call may start again after a restart of the host.
    if (!this.#executed.has(id)) this.#add(call, id, call.summary);
  }

  #add(event: Event, id: string, reference: string): Step {
    const tool = bare(reference);
    // A conversation has the reference of a tool whose bare name is ambiguous.
    const requested = this.#take(({ name, arguments: args }) => {
      return (name === reference || name === tool) && typeof args !== "string";
    });
    const step = new Step(event, id, tool, requested);
    this.#executed.set(id, step);
    this.steps.push(step);
    return step;
  }

  /** Removes the first requested call that fits. */
  #take(fits: (call: StoredCall) => boolean): StoredCall | undefined {
    const place = this.requested.findIndex(fits);
    return place < 0 ? undefined : this.requested.splice(place, 1)[0];
  }

  /** Adds the call of a message with a result, if no tool has executed the call. */
  refuse(event: Event, message: Json): void {
    const { role, tool_call_id: callId, content } = fieldsOf(message);
    if (role !== "tool") return;
    const call = this.#take(({ id }) => id === callId);
    if (call === undefined) return;
    const step = new Step(event, `${event.run}:${call.id}`, bare(call.name), call);
    step.end(event, "ERROR", textOf(content));
    step.isRefused = true;
    step.durationMs = 0;
    this.steps.push(step);
  }

  end(event: Called): void {
    const { task, call, summary = "", result, duration_us: durationUs } = event;
    const id = `${task}:${call}`;
    const step = this.#executed.get(id) ?? this.#add(event, id, summary);
    step.durationMs = Math.floor(durationUs / 1_000);
    if ("Err" in result) {
      step.end(event, "ERROR", Failure.read(result.Err)?.message ?? "");
      return;
    }
    const { is_error: isError, content, structured = null, updates } = fieldsOf(result.Ok);
    const text = textOf(content);
    if (isError === true) {
      step.end(event, "ERROR", text);
    } else {
      step.end(event, "SUCCESS");
      step.output = structured === null ? text : structured;
    }
    step.writes = writesIn(updates);
  }

  /** Ends the steps that have no result when their run ends. */
  endUnfinished(event: RunEnded): void {
    for (const step of this.steps) {
      if (step.status !== "RUNNING") continue;
      if (event.status === "cancelled") step.end(event, "CANCELLED", CANCELLED);
      else step.end(event, "ERROR", LOST);
      step.durationMs = Math.max(event.at_ms - step.startedMs, 0);
    }
  }
}

/** Returns the name of a tool without the app or plugin. */
function bare(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

function writesIn(updates: Json | undefined): Write[] {
  if (!Array.isArray(updates)) return [];
  return updates.flatMap((update) => {
    const { channel, value } = fieldsOf(update);
    return typeof channel === "string" && value !== undefined ? [{ channel, value }] : [];
  });
}
