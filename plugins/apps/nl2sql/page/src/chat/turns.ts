// Questions with their steps and answers, from the history and from the stream.
import type { Message, Messages, Pending, Result, StepEvent, StepName } from "./types.ts";

export interface Step {
  name: StepName;
  status: "running" | "done" | "failed";
  message: string;
  detail?: StepEvent["detail"];
}

export interface Turn {
  key: string;
  question: string;
  /** `waiting`: it is in progress, but the page does not get its steps. */
  state: "running" | "waiting" | "done" | "failed";
  steps: Step[];
  result?: Result;
  /** Id of the answer in the history. */
  messageId?: number;
  error?: string;
}

/** The turns of a session. */
export interface ChatHistory {
  turns: readonly Turn[];
  /** A run is active, and this page does not have its stream. */
  isRunning: boolean;
}

const UNANSWERED = "这个问题没有得到回答。";
const NOT_DELIVERED = "问题没有送达，请重新发送。";

/** Returns true while the last question is in progress and this page gets its steps. */
export function isStreaming(history: ChatHistory | undefined): boolean {
  return history?.turns.at(-1)?.state === "running";
}

/** Returns true while a question is in progress and this page does not get its steps. */
export function isWaiting(history: ChatHistory | undefined): boolean {
  return history?.isRunning === true || history?.turns.at(-1)?.state === "waiting";
}

/** Returns the history after a read. A read that a question has overtaken changes nothing. */
export function historyOf(found: Messages, known: ChatHistory | undefined): ChatHistory {
  if (known !== undefined && isStreaming(known)) return known;
  const isRunning = found.pending?.status === "running";
  return { turns: merged(turnsOf(found), known?.turns ?? [], isRunning), isRunning };
}

/** Returns the turns of messages. Only the last question can still be in progress. */
function turnsOf({ messages, pending }: Messages): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === "user") turns.push(unanswered(message));
    else if (last !== undefined && last.result === undefined) answer(last, message);
  }
  const last = turns.at(-1);
  if (last !== undefined && last.result === undefined) settle(last, pending);
  return turns;
}

function unanswered({ id, content }: Message): Turn {
  return { key: `m${id}`, question: content, state: "failed", steps: [], error: UNANSWERED };
}

function answer(turn: Turn, { id, result }: Message): void {
  if (result === null) return;
  delete turn.error;
  Object.assign(turn, { state: "done", result, messageId: id });
}

function settle(turn: Turn, pending: Pending): void {
  if (pending?.status === "running") {
    turn.state = "waiting";
    delete turn.error;
  } else if (pending?.status === "failed" && pending.message !== "") {
    turn.error = pending.message;
  }
}

/** Creates the turn of a question that was accepted. */
export function newTurn(key: string, question: string): Turn {
  return { key, question, state: "running", steps: [] };
}

/** Returns the turn after an event of its stream. */
export function withEvent(turn: Turn, event: StepEvent): Turn {
  if (event.step === "workflow") return withEnd(turn, event);
  const { step: name, message, detail } = event;
  if (event.status === "start") {
    return { ...turn, steps: [...turn.steps, { name, status: "running", message }] };
  }
  const status = event.status === "error" || isFailure(detail) ? "failed" : "done";
  const step: Step = { name, status, message, ...(detail === undefined ? {} : { detail }) };
  const at = turn.steps.findLastIndex((it) => it.name === name);
  const steps = at < 0 ? [...turn.steps, step] : turn.steps.with(at, step);
  return { ...turn, steps };
}

/** Returns true for a step that ended without its result. */
function isFailure(detail: StepEvent["detail"]): boolean {
  if (detail === undefined || detail === null) return false;
  if ("generation_failed" in detail) return true;
  return "is_valid" in detail && !detail.is_valid;
}

function withEnd(turn: Turn, { status, message, result }: StepEvent): Turn {
  if (status === "start") return turn;
  if (status === "end" && result !== undefined) return { ...turn, state: "done", result };
  const steps = turn.steps.map((step): Step => {
    return step.status === "running" ? { ...step, status: "failed" } : step;
  });
  return { ...turn, state: "failed", steps, error: message };
}

/**
 * Adds to stored turns what only this page knows: the steps that it has received, and all rows. A
 * question that is not stored was not delivered, unless a run has yet to store it.
 */
function merged(fresh: readonly Turn[], known: readonly Turn[], isRunning: boolean): Turn[] {
  const turns = fresh.map((turn, at) => {
    const before = known[at];
    return before?.question === turn.question ? withKnown(turn, before) : turn;
  });
  const lacking = known.slice(fresh.length).filter(({ state }) => state !== "done");
  const lost: Partial<Turn> = { state: "failed", error: NOT_DELIVERED };
  return [...turns, ...lacking.map((turn) => (isRunning ? turn : { ...turn, ...lost }))];
}

function withKnown(turn: Turn, before: Turn): Turn {
  const count = (one: Turn) => one.result?.sql_validate_result?.result?.length ?? 0;
  const result = count(before) > count(turn) ? before.result : turn.result;
  const error = turn.state === "failed" ? (before.error ?? turn.error) : undefined;
  return {
    ...turn,
    key: before.key,
    steps: before.steps.map((step) => closed(step, turn)),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
  };
}

/** Ends a step whose end was not received, if its turn has ended. */
function closed(step: Step, { state }: Turn): Step {
  if (step.status !== "running" || state === "running" || state === "waiting") return step;
  return { ...step, status: state === "done" ? "done" : "failed" };
}

/** Returns the number of an attempt to generate a statement, counted from 1. */
export function attempt(steps: readonly Step[], at: number): number {
  return steps.slice(0, at + 1).filter(({ name }) => name === "sql_generation").length;
}
