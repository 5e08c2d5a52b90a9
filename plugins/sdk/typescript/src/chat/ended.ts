// Ended runs of a conversation, as responses.

import type { Failure } from "../failure.ts";
import type { Json } from "../json.ts";
import * as log from "../log.ts";
import type { EndedRun, Interrupt, Outcome } from "../runs/index.ts";
import { Response } from "../web/response.ts";
import { status } from "../web/status.ts";
import type { LastReply, ReplyStep } from "./last-reply.ts";
import type { Texts } from "./texts.ts";

/** A tool call that waits for approval. */
export interface Question {
  /** Id of the question. */
  id: string;
  /** What to show to the person. */
  payload: Json;
  /** JSON Schema for the answer; absent if the interrupt has none. */
  responseSchema?: Json;
}

/** Returns a question of a conversation as clients get it. */
export function questionOf({ id, payload, responseSchema }: Interrupt): Question {
  return responseSchema === undefined ? { id, payload } : { id, payload, responseSchema };
}

/** A run of a conversation that has ended or is interrupted. {@link Chat.wait} creates it. */
export class Ended {
  /** Id of the thread. */
  readonly threadId: string;
  /** Outcome of the run. */
  readonly outcome: Outcome;
  /** Text of the last model turn; empty if it has none. */
  readonly reply: string;
  readonly #steps: readonly ReplyStep[];
  readonly #texts: Texts;

  /** Creates the end of a run with its last reply. */
  constructor({ run, outcome }: EndedRun, last: LastReply, texts: Texts) {
    this.threadId = run.threadId;
    this.outcome = outcome;
    this.reply = last.text;
    this.#steps = last.steps;
    this.#texts = texts;
  }

  /**
   * Returns the response for the outcome, as {@link respond} does. For a failed run it has status 502
   * and the text {@link Texts.failed}.
   */
  toResponse(): Response {
    return this.respond(() => [status.BAD_GATEWAY, this.#texts.failed]);
  }

  /**
   * Returns the response for the outcome: {@link Reply} with status 200 for a completed run,
   * {@link Waiting} with 202 for an interrupted one, and {@link ChatError} for any other. `describe`
   * returns the status and the text for the failure of a failed run, which is logged. A cancelled run
   * has the status 409.
   */
  respond(describe: (failure: Failure) => [status: number, text: string]): Response {
    const { threadId, outcome, reply } = this;
    const steps = this.#steps;
    if (outcome.type === "completed") return Response.json(200, { threadId, reply, steps });
    if (outcome.type === "interrupted") {
      const questions = outcome.interrupts.map(questionOf);
      return Response.json(status.ACCEPTED, { threadId, reply, questions, steps });
    }
    let refusal: [status: number, text: string] = [status.CONFLICT, this.#texts.cancelled];
    if (outcome.type === "failed") {
      log.warn(`the run on thread \`${threadId}\` failed: ${outcome.failure.message}`);
      refusal = describe(outcome.failure);
    }
    const [code, error] = refusal;
    return Response.json(code, { threadId, error, steps });
  }
}
