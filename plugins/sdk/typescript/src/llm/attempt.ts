// Attempts with the candidates of a route, until a completion passes the checks of a task.

import { code, detailOf, Failure, type Result, settled } from "../failure.ts";
import * as log from "../log.ts";
import { wordsOf } from "../whitespace.ts";
import { type Attempt, attemptsIn, type Completion } from "./completion.ts";
import { complete, type RequestOptions } from "./request.ts";
import type { RouteInfo } from "./route.ts";

/** Code of the failure of a {@link Task} for which no candidate made a completion that passes. */
export const TASK_FAILED = "task-failed";

/** The reasons why the check of a {@link Task} refuses a completion. The model gets them. */
export class Refusal extends Error {
  /** The reasons, one sentence each. */
  readonly reasons: string[];

  /** Creates a refusal with its reasons, one sentence each. */
  constructor(...reasons: string[]) {
    super(reasons.join("; "));
    this.name = "Refusal";
    this.reasons = reasons;
  }
}

/** A value that passed the checks of a {@link Task}. */
export class Checked<T> {
  /** The value that the check returned. */
  readonly value: T;
  /** The model of the completion, as `provider:model`. */
  readonly model: string;
  /** Number of attempts with this model. */
  readonly attempts: number;

  /** Creates a checked value. */
  constructor(value: T, model: string, attempts: number) {
    this.value = value;
    this.model = model;
    this.attempts = attempts;
  }

  /** Returns the model with its attempts, as `provider:model (attempts=n)`. */
  origin(): string {
    return `${this.model} (attempts=${this.attempts})`;
  }
}

/** What the attempts need of a task. */
export interface Asked<T> {
  /** Name of the task. */
  name: string;
  /** The route of the task. */
  route: RouteInfo;
  /** Maximum number of attempts with each candidate. */
  allowed: number;
  /** Limits the reasons of an attempt. */
  bounded(reasons: readonly string[]): string[];
  /** Makes a request with the reasons against the last completion. */
  ask(reasons: readonly string[]): RequestOptions;
  /** Returns the value of a completion, or throws the {@link Refusal}. */
  read(completion: Completion): T;
}

/** The failure of one candidate. */
type GaveUp = {
  /** `provider:model`. */
  model: string;
  /** Number of attempts. */
  attempts: number;
  /** Reasons of the last attempt. */
  errors: string[];
};

/** The result of a request. */
type Verdict<T> =
  /** The completion passes. */
  | { type: "passed"; value: T }
  /**
   * `refused`: the completion violates the schema, or the check refuses it. `transient`: there is no
   * completion, but a retry can succeed. `permanent`: there is none, and a retry cannot succeed.
   */
  | { type: "refused" | "transient" | "permanent"; reasons: string[] };

/** The last completion, of any candidate. */
interface Last {
  /** The reasons against it; empty before the first completion. */
  reasons: string[];
}

/** Calls the candidates one after the other. */
export function run<T>(asked: Asked<T>): Checked<T> {
  const { name, route } = asked;
  const failed: GaveUp[] = [];
  const last: Last = { reasons: [] };
  for (let number = 0; number < route.candidates(); number += 1) {
    const result = callCandidate(asked, number, last);
    if (result instanceof Checked) return result;
    log.warn(`task \`${name}\`: ${sentence(result)}`);
    failed.push(result);
  }
  const message = `no model could do task \`${name}\`: ${failed.map(sentence).join(" | ")}`;
  throw new Failure(TASK_FAILED, message, { details: { task: name, models: failed } });
}

/** Calls one candidate until a completion passes or no attempt is left. */
function callCandidate<T>(
  { route, allowed, bounded, ask, read }: Asked<T>,
  number: number,
  last: Last,
): Checked<T> | GaveUp {
  let attempts = 0;
  // The name of the model before the host reports it.
  let model = number === 0 ? `${route.provider}:${route.model}` : `fallback ${number}`;
  for (;;) {
    const retries = allowed - attempts - 1;
    // The next request has all reasons, so the host does not repair the completion.
    const request = { ...ask(last.reasons), candidate: number, retries, withoutRepair: true };
    const result = settled(() => complete(request));
    const tried = reported(result);
    const tries = tried.reduce((sum, attempt) => sum + attempt.tries, 0);
    attempts += Math.max(tries, 1);
    const newest = tried.at(-1);
    if (newest !== undefined) model = `${newest.provider}:${newest.model}`;
    const verdict = judge(result, read);
    if (verdict.type === "passed") return new Checked(verdict.value, model, attempts);
    if (verdict.type === "refused") last.reasons = verdict.reasons;
    if (verdict.type === "permanent" || attempts >= allowed) {
      return { model, attempts, errors: bounded(verdict.reasons) };
    }
  }
}

/**
 * Judges the result of a request.
 *
 * @throws `cancelled`, after which no request may be sent, and exceptions of `read`.
 */
function judge<T>(result: Result<Completion>, read: (completion: Completion) => T): Verdict<T> {
  if (result instanceof Failure) {
    if (result.code === code.CANCELLED) throw result;
    const reasons = result.message.split("\n").filter((line) => wordsOf(line).length > 0);
    if (result.refusedCompletion() !== undefined) return { type: "refused", reasons };
    return { type: isTransient(result) ? "transient" : "permanent", reasons };
  }
  try {
    return { type: "passed", value: read(result) };
  } catch (error) {
    if (error instanceof Refusal) return { type: "refused", reasons: error.reasons };
    throw error;
  }
}

/** Returns the attempts that the host reports with a completion or a failure. */
function reported(result: Result<Completion>): Attempt[] {
  if (!(result instanceof Failure)) return result.attempts();
  return attemptsIn(detailOf(result, "attempts"));
}

/**
 * Returns true if the same request can succeed now. If a provider demands a longer delay than the host
 * accepts, the next candidate follows.
 */
function isTransient(failure: Failure): boolean {
  return failure.retryable && (detailOf(failure, "retry_after_ms") ?? null) === null;
}

function sentence({ model, attempts, errors }: GaveUp): string {
  return `\`${model}\` (attempts=${attempts}): ${errors.join("; ")}`;
}
