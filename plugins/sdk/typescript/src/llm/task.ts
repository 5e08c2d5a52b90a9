// Structured tasks: requests whose completions have to pass the checks of the plugin.

import type { output } from "zod/v4/core";
import { Failure } from "../failure.ts";
import type { Type } from "../json.ts";
import { fill, head } from "../prompt.ts";
import { inputSchema } from "../schema.ts";
import { wordsOf } from "../whitespace.ts";
import { type Checked, Refusal, run } from "./attempt.ts";
import type { Completion } from "./completion.ts";
import type { RequestOptions } from "./request.ts";
import { type RouteInfo, route } from "./route.ts";

/** Default template of the text with the reasons of a refusal. */
const REFUSAL = `An earlier answer was refused for these reasons:
{{reasons}}
Answer again, whole, with all of them corrected.
`;

/** Maximum number of reasons in a request. A model corrects a few at a time. */
const REASONS = 12;

/** Maximum number of characters of one reason. Some repeat the text that they are about. */
const REASON_CHARS = 300;

/** The route of a {@link Task}, and the limits of its attempts. */
export interface TaskOptions {
  /** Name of the route; without it, the name of the task. */
  route?: string;
  /**
   * Template of the text that a request after a refused completion adds to the user message. Its
   * placeholder is `{{reasons}}`. The default is in English.
   */
  refusal?: string;
  /** Sampling temperature, 0 for the likeliest completion; without it, the default of the route. */
  temperature?: number;
  /** Maximum number of output tokens; without it, the default of the route. */
  maxOutputTokens?: number;
  /** Idle timeout of an attempt in milliseconds, see {@link RequestOptions.timeoutMs}. */
  timeoutMs?: number;
  /** Maximum number of retries with each candidate; 0 by default. Those that the host makes count. */
  retries?: number;
}

/**
 * A request whose completion has to pass a check, with the limits of its attempts.
 *
 * The task calls the candidates of its route one after the other, until a completion passes. Each
 * candidate gets {@link TaskOptions.retries} retries, whatever failed before: the call, the schema or
 * the check. After a failure that a retry cannot correct, the next candidate follows immediately. The
 * request after a refused completion has the reasons, so the host does not repair the completion.
 *
 * A request whose schema is the only check needs no task, because the host makes retries, repairs and
 * fallbacks itself.
 *
 * ```ts
 * import { llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const Plan = z.object({ days: z.int() });
 *
 * const PLAN = new llm.Task("plan", { maxOutputTokens: 1_024, retries: 1 });
 *
 * const answers = [9, 3];
 * const host = new FakeHost()
 *   .route("plan", {})
 *   .llm(() => llm.Completion.ofJson({ days: answers.shift() ?? 0 }));
 * const plan = host.run(() =>
 *   PLAN.document("Plan a journey.", "To Osaka.", Plan, ({ days }) => {
 *     if (days < 1 || days > 7) throw new llm.Refusal(`\`days\` is ${days}; give 1 to 7`);
 *     return days;
 *   }),
 * );
 * assert.deepEqual([plan.value, plan.attempts], [3, 2]);
 * const asked = host.llmRequests().map((request) => request.text());
 * assert.equal(asked[0], "Plan a journey.\nTo Osaka.");
 * assert.ok(asked[1]?.includes("- `days` is 9; give 1 to 7"));
 * ```
 */
export class Task {
  /** Name of the task, and of the schema of its documents. */
  readonly name: string;
  readonly #route: string;
  readonly #refusal: string;
  readonly #retries: number;
  readonly #limits: Pick<RequestOptions, "temperature" | "maxOutputTokens" | "timeoutMs">;

  /** Creates a task. */
  constructor(name: string, options: TaskOptions = {}) {
    const { route = name, refusal = REFUSAL, retries = 0, ...limits } = options;
    this.name = name;
    this.#route = route;
    this.#refusal = refusal;
    this.#retries = retries;
    this.#limits = limits;
  }

  /**
   * Requests a document. `check` returns the value that the plugin makes of the document, or throws a
   * {@link Refusal} with the reasons why it refuses the document.
   *
   * @throws {@link TASK_FAILED} if no completion passes. The message names the task, and the models
   * with the reasons of their last attempts; the details have them as `task` and `models`.
   * `cancelled` if the run was cancelled. The failure of {@link route}, if the task cannot use its
   * route. `internal` if `{{reasons}}` is not the placeholder of {@link TaskOptions.refusal}. Any
   * other exception of `check`.
   */
  document<T extends Type, U>(
    system: string,
    user: string,
    type: T,
    check: (document: output<T>) => U,
  ): Checked<U> {
    const schema = inputSchema(`the schema \`${this.name}\``, type);
    const request = { system, user, schema: { name: this.name, schema } };
    return this.#run(request, (completion) => check(structured(completion, type)));
  }

  /**
   * Requests a text. A text that is empty, cut off or withheld is refused before `check` gets it.
   * Otherwise like {@link Task.document}.
   *
   * @throws The failures of {@link Task.document}.
   */
  text<U>(system: string, user: string, check: (text: string) => U): Checked<U> {
    return this.#run({ system, user }, (completion) => check(wholeText(completion)));
  }

  #run<U>(
    asked: Pick<RequestOptions, "system" | "schema"> & { user: string },
    read: (completion: Completion) => U,
  ): Checked<U> {
    // The template is filled only after a refused completion, and must not fail as late as that.
    fill(this.#refusal, { reasons: "" });
    const request = { ...this.#limits, ...asked, route: this.#route };
    const ask = (reasons: readonly string[]) => {
      return { ...request, user: asked.user + this.#refusalOf(reasons) };
    };
    const { name } = this;
    return run({ name, route: this.#info(), allowed: this.#retries + 1, bounded, ask, read });
  }

  #info(): RouteInfo {
    try {
      return route(this.#route);
    } catch (error) {
      throw error instanceof Failure ? error.context(this.name) : error;
    }
  }

  /** Returns the end of the user message; empty without reasons. */
  #refusalOf(reasons: readonly string[]): string {
    if (reasons.length === 0) return "";
    const lines = bounded(reasons).map((reason) => `- ${reason}`);
    return `\n\n${fill(this.#refusal, { reasons: lines.join("\n") })}`;
  }
}

/** Returns the first reasons, each on one line and of limited length. */
function bounded(reasons: readonly string[]): string[] {
  return reasons.slice(0, REASONS).map((reason) => head(wordsOf(reason).join(" "), REASON_CHARS));
}

/** Returns the document of a completion. */
function structured<T extends Type>(completion: Completion, type: T): output<T> {
  try {
    return completion.structuredAs(type);
  } catch (error) {
    throw error instanceof Failure ? new Refusal(error.message) : error;
  }
}

/** Returns the text of a completion that is complete and not empty. */
function wholeText(completion: Completion): string {
  if (completion.finishReason === "length") {
    throw new Refusal("the answer was cut off at its length limit; be shorter");
  }
  if (completion.finishReason === "content-filter") {
    throw new Refusal("the answer was withheld by the provider");
  }
  if (!completion.isAnswer()) throw new Refusal("the answer is empty");
  return completion.text();
}
