// The events of an agent in the log of a thread.

import type { Json } from "../json.ts";
import {
  type Called,
  type CallStarted,
  type Event,
  isModelCall,
  isToolCall,
  readEvent,
  type Streamed,
  type TaskFinished,
} from "../runs/index.ts";
import { messageOf } from "./message.ts";
import { type Step, stepsOf } from "./steps.ts";
import type { UiMessage } from "./ui/message.ts";

/** The names of an {@link Agent}. */
export interface AgentNames {
  /** The node that calls the model; `agent` by default. */
  modelNode?: string;
  /** The node that calls the tools; `tools` by default. */
  toolNode?: string;
  /** The channel with the conversation, which has the reducer `messages`; `messages` by default. */
  channel?: string;
}

/**
 * The nodes of an agent and the channel with its conversation, by which its events are found in the log
 * of a thread.
 *
 * {@link Agent.steps} and {@link Agent.message} are for an app that stores conversations in tables. They are pure:
 * the same events give the same results, so an app can apply a log again after a crash. The log has
 * more than the channel, such as the text of a model call that was cancelled.
 *
 * The start of a call does not name its node, so no other node of the graph may call tools: their calls
 * would be steps without a result.
 *
 * ```ts
 * import { chat } from "wattle-plugin";
 *
 * const AGENT = new chat.Agent({ modelNode: "writer" });
 *
 * // A run that is cancelled during a tool call.
 * const text = { kind: "text", text: "Let me add them." };
 * const tool = { function: "tools.call", summary: "notes/add" };
 * const log = [
 *   { type: "streamed", task: "t1", node: "writer", call: 0, deltas: [text] },
 *   { type: "call_started", task: "t2", call: 0, ...tool },
 *   { type: "run_ended", status: "cancelled" },
 * ];
 * const events = log.map((event, index) => {
 *   return AGENT.read({ ...event, seq: index + 1, at_ms: 5, run: "run-7" });
 * });
 * const steps = AGENT.steps(events);
 * assert.deepEqual([steps[0]?.tool, steps[0]?.status], ["add", "CANCELLED"]);
 * const message = AGENT.message(events, steps, (output) => output);
 * assert.deepEqual([message?.id, message?.text()], ["msg_run-7", "Let me add them."]);
 * ```
 */
export class Agent {
  /** The node that calls the model. */
  readonly modelNode: string;
  /** The node that calls the tools. */
  readonly toolNode: string;
  /** The channel with the conversation. */
  readonly channel: string;

  /** Creates an agent; by default with the names of a graph with the nodes of the plugin `std`. */
  constructor({ modelNode = "agent", toolNode = "tools", channel = "messages" }: AgentNames = {}) {
    this.modelNode = modelNode;
    this.toolNode = toolNode;
    this.channel = channel;
  }

  /**
   * Reads an event and drops what an agent does not need: writes to other channels, and outputs of
   * other calls, which can be long documents. {@link steps} and {@link message} return the same for
   * events with and without it.
   *
   * @throws `invalid` if the value is not an event.
   */
  read(json: Json): Event {
    const event = readEvent(json);
    if (event.type === "task_finished") {
      return { ...event, writes: event.writes.filter(({ channel }) => channel === this.channel) };
    }
    if (event.type !== "called" || endsStep(this, event) || endsTurn(this, event)) return event;
    const { seq, at_ms, run } = event;
    return { seq, at_ms, run, type: "other", event: null };
  }

  /**
   * Returns true if an event begins or ends a run or a step. Most events do not, such as deltas of
   * texts.
   */
  isProgress(event: Event): boolean {
    switch (event.type) {
      case "run_started":
      case "run_ended":
        return true;
      case "call_started":
        return beginsStep(event);
      case "called":
        return endsStep(this, event);
      default:
        return false;
    }
  }

  /**
   * Returns the steps of a run, in order: its tool calls, with those that got an error without a tool.
   * A step without a result ends with its run. The events are those of the run, from its first one.
   */
  steps(events: readonly Event[]): Step[] {
    return stepsOf(this, events);
  }

  /**
   * Returns the output of a run as one message; `undefined` for a run without output. It equals the
   * message that a page builds from the host's stream of the format `ai-sdk`, even if no client has
   * read the stream. A model call that was cancelled has its text so far, and a tool call without a
   * result is pending until the run ends.
   *
   * The events are those of the run, from its first one, and `steps` are its {@link steps}. `output`
   * returns the output of a tool as the app stores it.
   */
  message(
    events: readonly Event[],
    steps: readonly Step[],
    output: (output: Json) => Json,
  ): UiMessage | undefined {
    return messageOf(this, events, steps, output);
  }
}

/** Returns true if a node itself makes a call, and not a tool. */
function isOfNode({ scope = [] }: { scope?: number[] }): boolean {
  return scope.length === 0;
}

/** Returns true if a node calls a tool. Calls that tools make are not steps. */
export function beginsStep(call: CallStarted): boolean {
  return isOfNode(call) && isToolCall(call.function);
}

/** Returns true if a tool call has ended. */
export function endsStep(agent: Agent, called: Called): boolean {
  return isOfNode(called) && called.node === agent.toolNode && isToolCall(called.function);
}

/** Returns true if a node calls a model. */
export function beginsTurn(call: CallStarted): boolean {
  return isOfNode(call) && isModelCall(call.function);
}

/** Returns true if a model call of the conversation has ended. */
export function endsTurn(agent: Agent, called: Called): boolean {
  return isOfNode(called) && called.node === agent.modelNode && isModelCall(called.function);
}

/** Returns true if deltas are those of a model call of the conversation. */
export function streamsTurn(agent: Agent, streamed: Streamed): boolean {
  return isOfNode(streamed) && streamed.node === agent.modelNode;
}

/** Returns the messages that a task has written. */
export function writtenMessages(agent: Agent, task: TaskFinished): Json[] {
  const writes = task.writes.filter(({ channel }) => channel === agent.channel);
  return writes.flatMap(({ value }) => value);
}
