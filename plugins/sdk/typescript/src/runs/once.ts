// Resumes for requests that clients send more than once.

import { code, detailOf, Failure, settled } from "../failure.ts";
import * as log from "../log.ts";
import { find, type ResumeOptions, type RunRef, resume, wait } from "./request.ts";
import type { EndedRun, Thread } from "./result.ts";

/**
 * Maximum attempts. Each attempt may wait for a run of another request, which can fail and leave the
 * thread to this request.
 */
const ATTEMPTS = 5;

/** The outcome of {@link resumeOnce}. */
export type ResumeOutcome<T> =
  /** The thread was not resumed, because the app already had a result for it. */
  | { type: "done"; result: T }
  /** The resumed run has ended or is interrupted again. */
  | { type: "ended"; run: EndedRun }
  /** An answer violates the schema of its interrupt, which remains pending. */
  | { type: "refused"; failure: Failure }
  /** The thread is not interrupted, does not exist or has expired. */
  | { type: "not_interrupted" }
  /** Other requests had active runs in all attempts. */
  | { type: "busy" };

/**
 * Resumes an interrupted thread of a graph and waits until the run has ended or is interrupted again.
 * Requests that arrive together, such as those of a double click, resume it once.
 *
 * `done` returns the result of a thread that needs no answers, such as that of an earlier request, or
 * `undefined`. If a run of another request is active, this request waits for its end and reads the
 * thread again.
 *
 * ```ts
 * import { runs } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const host = new FakeHost().thread({ threadId: "t", graph: "review", state: { stored: [11, 12] } });
 * const answers = { threadId: "t", answer: { ok: true } };
 * const once = host.run(() =>
 *   runs.resumeOnce("review", answers, (thread) => thread.channel("stored", z.array(z.int()))),
 * );
 * assert.deepEqual(once, { type: "done", result: [11, 12] });
 * assert.deepEqual(host.resumed(), []);
 * ```
 *
 * @throws Failures of `done` and of host calls. The failure of a failed run is in the run of the
 * outcome `ended`.
 */
export function resumeOnce<T>(
  graph: string,
  request: ResumeOptions,
  done: (thread: Thread) => T | undefined,
): ResumeOutcome<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const thread = find(graph, request.threadId);
    if (thread === undefined) return { type: "not_interrupted" };
    const result = done(thread);
    if (result !== undefined) return { type: "done", result };
    const active = thread.activeRun();
    if (active !== undefined) {
      awaitOther(active);
      continue;
    }
    if (!thread.isInterrupted()) return { type: "not_interrupted" };
    const resumed = settled(() => resume(request));
    if (!(resumed instanceof Failure)) return { type: "ended", run: wait(resumed) };
    const outcome = outcomeOf<T>(resumed);
    if (outcome !== undefined) return outcome;
    // Only the failure of a busy thread names a run.
    const runId = resumed.code === code.BUSY ? detailOf(resumed, "run_id") : undefined;
    if (typeof runId === "string") awaitOther({ threadId: thread.threadId, runId });
  }
  return { type: "busy" };
}

/** Returns the outcome of a failed resume; `undefined` if another attempt follows. */
function outcomeOf<T>(failure: Failure): ResumeOutcome<T> | undefined {
  switch (failure.code) {
    case code.BUSY:
    // Another request answered the interrupt meanwhile.
    case code.CONFLICT:
      return undefined;
    case code.NOT_FOUND:
    case code.EXPIRED:
      return { type: "not_interrupted" };
    case code.INVALID:
      return { type: "refused", failure };
    default:
      throw failure;
  }
}

/**
 * Waits for the run of another request. Its outcome does not matter, not even if the run was rejected
 * and never existed: the thread determines the next step.
 */
function awaitOther(run: RunRef): void {
  const ended = settled(() => wait(run));
  if (ended instanceof Failure) {
    log.debug(`wait for the other run of thread \`${run.threadId}\`: ${ended.message}`);
  }
}
