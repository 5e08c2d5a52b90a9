// Questions with their steps and answers, from the history and from the stream.
import type { Detail, Messages, Progress, Result, StepName } from "./types.ts";

export interface Step {
  name: Exclude<StepName, "workflow">;
  status: "running" | "done" | "failed";
  message: string;
  detail?: Detail | undefined;
}

export interface Turn {
  key: string;
  question: string;
  /** `waiting`: it is in progress, but the page does not get its steps. */
  state: "running" | "waiting" | "done" | "failed";
  steps: readonly Step[];
  result?: Result | undefined;
  /** Id of the answer in the history. */
  messageId?: number;
  error?: string | undefined;
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
  return messages.flatMap(({ id, role, content }, at): Turn[] => {
    if (role === "assistant") return [];
    const turn = { key: `m${id}`, question: content, steps: [] };
    const answer = messages[at + 1];
    if (answer?.result) {
      return [{ ...turn, state: "done", result: answer.result, messageId: answer.id }];
    }
    const status = answer === undefined ? pending : null;
    if (status?.status === "running") return [{ ...turn, state: "waiting" }];
    return [{ ...turn, state: "failed", error: status?.message || UNANSWERED }];
  });
}

/** Creates the turn of a question that was accepted. */
export function newTurn(key: string, question: string): Turn {
  return { key, question, state: "running", steps: [] };
}

/** Returns the turn after an event of its stream. */
export function withEvent(turn: Turn, event: Progress): Turn {
  if (event.step === "workflow") return withEnd(turn, event);
  const { step: name, message } = event;
  const detail = event.detail ?? undefined;
  if (event.status === "start") {
    return { ...turn, steps: [...turn.steps, { name, status: "running", message }] };
  }
  const status = event.status === "error" || isFailure(detail) ? "failed" : "done";
  const step: Step = { name, status, message, detail };
  const at = turn.steps.findLastIndex((it) => it.name === name);
  const steps = at < 0 ? [...turn.steps, step] : turn.steps.with(at, step);
  return { ...turn, steps };
}

/** Returns true for a step that ended without its result. */
function isFailure(detail: Detail | undefined): boolean {
  if (detail === undefined) return false;
  if ("generation_failed" in detail) return true;
  return "is_valid" in detail && !detail.is_valid;
}

function withEnd(turn: Turn, { status, message, result }: Progress): Turn {
  if (status === "start") return turn;
  if (status === "end" && result) return { ...turn, state: "done", result };
  return { ...turn, state: "failed", steps: ended(turn.steps, "failed"), error: message };
}

/** Ends the steps whose end was not received. */
function ended(steps: readonly Step[], status: "done" | "failed"): Step[] {
  return steps.map((step) => (step.status === "running" ? { ...step, status } : step));
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

function withKnown(turn: Turn, { key, steps, result, error }: Turn): Turn {
  const { state } = turn;
  const hasEnded = state === "done" || state === "failed";
  return {
    ...turn,
    key,
    steps: hasEnded ? ended(steps, state) : steps,
    result: count(result) > count(turn.result) ? result : turn.result,
    error: state === "failed" ? (error ?? turn.error) : undefined,
  };
}

/** Returns the number of rows that a result contains. */
function count(result: Result | undefined): number {
  return result?.sql_validate_result?.result.length ?? 0;
}

/** Returns the number of an attempt to generate a statement, counted from 1. */
export function attempt(steps: readonly Step[], at: number): number {
  return steps.slice(0, at + 1).filter(({ name }) => name === "sql_generation").length;
}
