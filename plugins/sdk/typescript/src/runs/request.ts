// Requests to start and resume runs.

import * as host from "#host/runs";
import { code, hasCode } from "../failure.ts";
import { type Extra, type Json, toValue } from "../json.ts";
import type { EndedRun, Thread } from "./result.ts";

/** Key of `extra` for {@link StartOptions.rejectIfInterrupted}. */
export const REJECT_IF_INTERRUPTED = "reject_if_interrupted";

/** A reference to a run. */
export interface RunRef {
  /** Id of the thread. */
  threadId: string;
  /** Id of the run. */
  runId: string;
}

/** A request to start a run. */
export interface StartOptions {
  /** Name of the graph. */
  graph: string;
  /** Input: an object of channel values; empty by default. */
  input?: unknown;
  /** Id of the thread; without it, the host creates a thread with a generated id. */
  threadId?: string | undefined;
  /** Run context, which every node receives as {@link Context.context}. */
  context?: unknown;
  /** Metadata of the thread. */
  metadata?: unknown;
  /**
   * Rejects the start if the thread is interrupted and has pending interrupts: the start fails with
   * `conflict`, and `reason` of its details is `interrupted`. By default, the run gives the
   * interrupts up. The host checks the thread while no other run can start.
   */
  rejectIfInterrupted?: boolean | undefined;
  /** Extension fields. */
  extra?: Extra;
}

/** A request to start a run as the host gets it. */
export interface Start {
  /** Name of the graph. */
  graph: string;
  /** An object of channel values. */
  input: Json;
  /** Id of the thread, unless it is new. */
  threadId: string | undefined;
  /** Run context. */
  context: Json | undefined;
  /** Metadata of the thread. */
  metadata: Json | undefined;
  /** Extension fields. */
  extra: Extra;
}

/** The effect of a failed run on its resumed thread. */
export type OnFailure =
  /** The thread keeps its progress. A later run continues with the failed task. */
  | "keep"
  /** The thread is reopened: the answered interrupts are pending again. */
  | "reopen";

/** Answers to pending interrupts. */
export interface ResumeOptions {
  /** Id of the thread. */
  threadId: string;
  /** Answer of the only pending interrupt. */
  answer?: unknown;
  /** Answers of several pending interrupts, by interrupt id. */
  answers?: Readonly<Record<string, unknown>>;
  /** The effect of a failed run on the thread; `keep` by default. */
  onFailure?: OnFailure;
  /** Extension fields. */
  extra?: Extra;
}

/** Answers to pending interrupts as the host gets them. */
export interface Resume {
  /** Id of the thread. */
  threadId: string;
  /** Answers by interrupt id. The empty id selects the only pending interrupt. */
  answers: Array<[interrupt: string, answer: Json]>;
  /** The effect of a failed run on the thread. */
  onFailure: OnFailure;
  /** Extension fields. */
  extra: Extra;
}

/**
 * Starts a run of the plugin's own app. Returns without waiting for its end.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().runEnds((run) => ({
 *   run,
 *   outcome: { type: "interrupted", interrupts: [new runs.Interrupt("q-1", "review", { rows: 2 })] },
 * }));
 * host.run(() => {
 *   const started = runs.start({ graph: "asset", input: { text: "hi" } });
 *   const ended = runs.wait(started);
 *   assert.deepEqual(ended.question().payload, { rows: 2 });
 *   runs.resume({ threadId: started.threadId, answer: { ok: true } });
 * });
 * assert.deepEqual(host.resumed()[0]?.answers, [["", { ok: true }]]);
 * ```
 */
export function start(request: StartOptions): RunRef {
  const { graph, input = {}, threadId, context, metadata, extra = {} } = request;
  const rejects = request.rejectIfInterrupted === true;
  const optional = (what: string, value: unknown) => {
    return value === undefined ? undefined : toValue(what, value);
  };
  return host.start({
    graph,
    input: toValue("the input of the run", input),
    threadId,
    context: optional("the run's context", context),
    metadata: optional("the metadata of the thread", metadata),
    extra: rejects ? { ...extra, [REJECT_IF_INTERRUPTED]: true } : extra,
  });
}

/** Starts a run and waits until it has ended or is interrupted. */
export function startAndWait(request: StartOptions): EndedRun {
  return wait(start(request));
}

/**
 * Answers pending interrupts and resumes the thread. Returns without waiting for the end of the run.
 *
 * @throws `not-found` if the thread does not exist or has expired, `conflict` if an interrupt is not
 * pending, `invalid` if an answer violates its schema (the interrupt remains pending), `busy` if a run
 * of the thread is active.
 */
export function resume(request: ResumeOptions): RunRef {
  const { threadId, answer, answers = {}, onFailure = "keep", extra = {} } = request;
  const only: Array<[string, unknown]> = answer === undefined ? [] : [["", answer]];
  const all = [...only, ...Object.entries(answers)];
  return host.resume({
    threadId,
    answers: all.map(([interrupt, value]) => [interrupt, toValue("the answer", value)]),
    onFailure,
    extra,
  });
}

/** Resumes the thread and waits until the run has ended or is interrupted. */
export function resumeAndWait(request: ResumeOptions): EndedRun {
  return wait(resume(request));
}

/** Waits until a run has ended or is interrupted. */
export function wait(run: RunRef): EndedRun {
  return host.wait(run);
}

/** Cancels a run. */
export function cancel(run: RunRef): void {
  host.cancel(run);
}

/** Cancels a run and waits until it has ended. */
export function cancelAndWait(run: RunRef): EndedRun {
  cancel(run);
  return wait(run);
}

/** Returns a thread, or `undefined` if it does not exist or has expired. */
export function thread(threadId: string): Thread | undefined {
  return host.thread(threadId);
}

/**
 * Returns a thread of a graph, or `undefined` if the graph has no such thread. A text that cannot be
 * the id of a thread is no failure, because the ids of requests come from clients.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost()
 *   .thread({ threadId: "t", graph: "notes", status: "running", runId: "run-7" });
 * host.run(() => {
 *   assert.equal(runs.find("notes", "t")?.activeRun()?.runId, "run-7");
 *   assert.equal(runs.find("orders", "t"), undefined);
 * });
 * ```
 */
export function find(graph: string, threadId: string): Thread | undefined {
  try {
    const found = thread(threadId);
    return found?.graph === graph ? found : undefined;
  } catch (error) {
    if (hasCode(error, code.NOT_FOUND, code.INVALID)) return undefined;
    throw error;
  }
}

/** Deletes a thread and all its data. */
export function deleteThread(threadId: string): void {
  host.deleteThread(threadId);
}

/**
 * Deletes a thread and all its data, if it exists. A record of the app, such as a case, has no thread
 * before its first run.
 */
export function deleteThreadIfAny(threadId: string): void {
  try {
    deleteThread(threadId);
  } catch (error) {
    if (!hasCode(error, code.NOT_FOUND)) throw error;
  }
}

/** Maximum number of events that one call of {@link events} returns. */
export const PAGE_EVENTS = 256;

/**
 * Returns at most `limit` events of a thread after a sequence number, as JSON, and never more than
 * {@link PAGE_EVENTS}. Fewer are returned if they are large; only an empty list is the end of the log.
 * {@link readEvent} gives them types, and {@link allEvents} reads all pages.
 */
export function events(threadId: string, after = 0, limit: number = PAGE_EVENTS): Json[] {
  return host.events(threadId, after, limit);
}
