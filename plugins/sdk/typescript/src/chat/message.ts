// The output of a run as one message of the AI SDK, from the log of its thread.

import { fieldsOf, type Json } from "../json.ts";
import { type Called, completionOf, type Delta, type Event } from "../runs/index.ts";
import { type Agent, beginsTurn, endsTurn, streamsTurn, writtenMessages } from "./agent.ts";
import { CANCELLED, type Step } from "./steps.ts";
import { callsOf, type StoredCall, textOf } from "./stored.ts";
import { UiMessage } from "./ui/message.ts";
import { assistantText, type CallState, stepStart, toolPart } from "./ui/part.ts";

/** Prefix of the id of the message, before the id of the run, as in the stream. */
const PREFIX = "msg_";

/** Error of a call whose arguments are not valid JSON, as in the stream. */
const UNREADABLE = "the arguments of the call are not valid JSON";

/** See {@link Agent.message}. */
export function messageOf(
  agent: Agent,
  events: readonly Event[],
  steps: readonly Step[],
  output: (output: Json) => Json,
): UiMessage | undefined {
  const [first] = events;
  if (first === undefined) return undefined;
  const folding = new Folding();
  for (const event of events) folding.add(agent, event);
  const isActive = isRunning(events);
  const parts = folding.turns.flatMap(({ text, reasoning, requested }) => {
    const turn = [
      ...(reasoning === "" ? [] : [assistantText("reasoning", reasoning)]),
      ...(text === "" ? [] : [assistantText("text", text)]),
      ...requested.map((call) => {
        const step = steps.find(({ callId }) => callId === call.id);
        const result = folding.results.get(call.id);
        return toolPart(call, stateOf(call, step, result, isActive, output));
      }),
    ];
    return turn.length === 0 ? [] : [stepStart(), ...turn];
  });
  if (parts.length === 0) return undefined;
  return new UiMessage(`${PREFIX}${first.run}`, "assistant", parts);
}

class Folding {
  turns: Turn[] = [];
  /**
   * Texts of the results in the conversation, by the id of the call. They have the errors of calls that
   * no tool executed.
   */
  readonly results = new Map<string, string>();

  add(agent: Agent, event: Event): void {
    if (event.type === "run_started") {
      // Model calls that have not ended are made again.
      if (event.reason === "recovery") this.turns = this.turns.filter(({ isEnded }) => isEnded);
    } else if (event.type === "call_started" && beginsTurn(event)) {
      this.#turn(event).restart();
    } else if (event.type === "streamed" && streamsTurn(agent, event)) {
      const turn = this.#turn(event);
      for (const delta of event.deltas) turn.apply(delta);
    } else if (event.type === "called" && endsTurn(agent, event)) {
      this.#turn(event).end(event);
    } else if (event.type === "task_finished" && event.node === agent.modelNode) {
      // The calls of the conversation have unique ids. A task without a model call, such as one at the
      // turn limit, has no turn.
      const turn = this.turns.findLast(({ task }) => task === event.task);
      if (turn !== undefined) turn.requested = writtenMessages(agent, event).flatMap(callsOf);
    } else if (event.type === "task_finished" && event.node === agent.toolNode) {
      for (const message of writtenMessages(agent, event)) {
        const { tool_call_id: callId, content } = fieldsOf(message);
        if (typeof callId === "string") this.results.set(callId, textOf(content));
      }
    }
  }

  #turn({ task, call }: { task: string; call: number }): Turn {
    const known = this.turns.findLast((turn) => turn.call === call && turn.task === task);
    if (known !== undefined) return known;
    const turn = new Turn(task, call);
    this.turns.push(turn);
    return turn;
  }
}

/** The output of one model call. */
class Turn {
  readonly task: string;
  /** Number of the call in its task. */
  readonly call: number;
  text = "";
  reasoning = "";
  /** The requested tool calls. */
  requested: StoredCall[] = [];
  isEnded = false;

  constructor(task: string, call: number) {
    this.task = task;
    this.call = call;
  }

  restart(): void {
    this.text = "";
    this.reasoning = "";
  }

  apply(delta: Delta): void {
    if (delta.kind === "restart") this.restart();
    if (delta.kind === "text" || delta.kind === "reasoning") this[delta.kind] += delta.text;
  }

  /** Replaces the deltas by the whole completion. A call without a completion keeps its deltas. */
  end(called: Called): void {
    this.isEnded = true;
    const completion = completionOf(called);
    if (completion === undefined) return;
    this.text = completion.text();
    this.reasoning = completion.reasoning();
    // The agent may request unreadable calls again without keeping them in the conversation.
    const calls = completion.toolCalls();
    this.requested = calls.filter(({ arguments: args }) => typeof args === "string");
  }
}

/** Returns true if the run of the events has not ended. */
function isRunning(events: readonly Event[]): boolean {
  const last = events.findLast(({ type }) => type === "run_started" || type === "run_ended");
  return last?.type !== "run_ended";
}

function stateOf(
  call: StoredCall,
  step: Step | undefined,
  result: string | undefined,
  isActive: boolean,
  output: (output: Json) => Json,
): CallState {
  if (step?.status === "SUCCESS") {
    return { type: "output", output: step.output === undefined ? null : output(step.output) };
  }
  const unreadable = typeof call.arguments === "string" ? UNREADABLE : undefined;
  const error = step === undefined ? (result ?? unreadable) : step.error;
  if (error === undefined && isActive) return { type: "pending" };
  return { type: "error", error: error ?? CANCELLED };
}
