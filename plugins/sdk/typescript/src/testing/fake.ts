// The fake host: methods that set its script, and methods that return recorded calls.

import { type Request as HttpRequest, Response as HttpResponse } from "../http.ts";
import type { Question } from "../interrupt.ts";
import { type Json, toValue, write } from "../json.ts";
import {
  type Completion,
  type ImageRequest,
  type Request as LlmRequest,
  RouteInfo,
  type RouteInfoFields,
} from "../llm/index.ts";
import {
  EndedRun,
  type EndedRunFields,
  type Outcome,
  type Resume,
  type RunRef,
  type Start,
  Thread,
  type ThreadFields,
} from "../runs/index.ts";
import { type Executed, Rows } from "../sql/index.ts";
import { ToolInfo, ToolOutput, type ToolReturn } from "../tool.ts";
import type { Call } from "../tools.ts";
import { encodeUtf8 } from "../utf8.ts";
import type { HandlerEntry } from "../web/handler.ts";
import { Request as WebRequest } from "../web/request.ts";
import { enter, type Logged, type Picture, type Script, State, type Statement } from "./state.ts";

/** A response of a script: a whole one, or a text or a JSON body with a status. */
export type ScriptedResponse =
  | HttpResponse
  | { status?: number; headers?: Array<[string, string]>; text?: string; json?: unknown };

/** The result of a scripted statement: rows, their effect, or the number of changed rows. */
export type ScriptedRows = Rows | Executed | number;

/**
 * A fake host that implements all imports with a script, and records the calls. Stored data is kept
 * between calls of {@link FakeHost.run}. Its clock is stopped at 2026-01-01T00:00:00Z, its time zone is
 * UTC, and blobs and memory are empty.
 *
 * A call outside of {@link FakeHost.run}, or without a script, fails with the code `unsupported` and the
 * name of the missing method.
 *
 * ```ts
 * import { llm, node } from "wattle-plugin";
 * import { FakeHost, runNode } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const summarize = node(
 *   "summarize",
 *   {
 *     doc: "Summarizes a text.",
 *     input: z.object({ text: z.string() }),
 *     output: z.object({ summary: z.string() }),
 *   },
 *   ({ text }) => ({ summary: llm.complete({ route: "chat", user: text }).text() }),
 * );
 *
 * const host = new FakeHost().llm(() => llm.Completion.ofText("short"));
 *
 * // The function itself, with types.
 * assert.deepEqual(host.run(() => summarize.run({ text: "long" })), { summary: "short" });
 *
 * // As the host calls it, with documents.
 * const decision = host.run(() => runNode(summarize, { text: "long" }));
 * assert.equal(decision.update("summary"), "short");
 * assert.equal(host.llmRequests()[0]?.text(), "long");
 * ```
 */
export class FakeHost {
  readonly #state = new State();

  /** Runs a function in which SDK calls go to this fake host. */
  run<T>(work: () => T): T {
    return enter(this.#state, work);
  }

  /**
   * Calls a handler, and returns the status and the JSON body of its response.
   *
   * ```ts
   * import { handler, Response } from "wattle-plugin";
   * import { FakeHost } from "wattle-plugin/testing";
   *
   * const health = handler("GET", "/health", { doc: "Reports whether the plugin is ready." }, () =>
   *   Response.json(200, { ready: true }),
   * );
   *
   * const [status, body] = new FakeHost().respond(health);
   * assert.deepEqual([status, body], [200, { ready: true }]);
   * ```
   *
   * @throws The failure of the handler; `invalid` if its response has no JSON body.
   */
  respond(
    handler: HandlerEntry,
    request: WebRequest<unknown> = new WebRequest(),
  ): [status: number, body: { [key: string]: Json }] {
    const response = this.run(() => handler.handle(request));
    return [response.status, response.jsonBody()];
  }

  /** Sets the script of model calls, including streamed ones. */
  llm(script: Script<LlmRequest, Completion>): this {
    this.#state.llm = script;
    return this;
  }

  /** Sets the script of image generation, which returns media types and bytes. */
  images(script: Script<ImageRequest, Picture[]>): this {
    this.#state.images = script;
    return this;
  }

  /** Sets the script of HTTP requests. */
  http(script: Script<HttpRequest, ScriptedResponse>): this {
    this.#state.http = (request) => responseOf(script(request));
    return this;
  }

  /** Sets the script of SQL statements. */
  sql(script: Script<Statement, ScriptedRows>): this {
    this.#state.sql = (statement) => executedOf(script(statement));
    return this;
  }

  /** Sets the SQL dialect of all databases. Default: `sqlite`. */
  dialect(dialect: string): this {
    this.#state.dialect = dialect;
    return this;
  }

  /** Grants a tool of another plugin and sets the script of its calls. */
  tool(name: string, script: Script<Json, ToolReturn>): this {
    return this.describedTool(new ToolInfo({ name }), script);
  }

  /** Grants a tool with a description and sets the script of its calls. */
  describedTool(info: ToolInfo, script: Script<Json, ToolReturn>): this {
    this.#state.tools.push({ info, script: (args) => outputOf(script(args)) });
    return this;
  }

  /** Sets the models of a route. */
  route(name: string, info: Partial<RouteInfoFields>): this {
    this.#state.routes.set(name, new RouteInfo(info));
    return this;
  }

  /** Sets a route of the tenant. */
  tenantRoute(name: string, config: unknown): this {
    this.#state.tenantRoutes.set(name, toValue("the route", config));
    return this;
  }

  /** Sets the clock, in milliseconds since 1970. */
  nowMs(nowMs: number): this {
    this.#state.nowMs = nowMs;
    return this;
  }

  /**
   * Sets the operator's time zone, with its offset from UTC in seconds. Time zones that were set earlier
   * remain available by name.
   */
  zone(name: string, offsetSeconds: number): this {
    this.#state.zones.push({ name, offsetSeconds });
    return this;
  }

  /** Adds an answer. Each interrupt takes the first answer that is not used yet. */
  answer(answer: unknown): this {
    this.#state.answers.push(toValue("the answer", answer));
    return this;
  }

  /** Sets a setting of the app. */
  setting(name: string, value: unknown): this {
    this.#state.settings[name] = toValue(`setting \`${name}\``, value);
    return this;
  }

  /** Sets the script that returns the outcomes of runs. */
  runEnds(script: Script<RunRef, EndedRunFields>): this {
    this.#state.runEnds = (run) => new EndedRun(script(run));
    return this;
  }

  /**
   * Sets how all runs end: their outcome, and the state that `runs.wait` returns with it.
   *
   * ```ts
   * import { runs } from "wattle-plugin";
   * import { FakeHost } from "wattle-plugin/testing";
   *
   * const host = new FakeHost().outcome({ type: "completed" }, { total: 3 });
   * const ended = host.run(() => runs.wait(runs.start({ graph: "order" })));
   * assert.deepEqual(ended.completed(), { total: 3 });
   * ```
   */
  outcome(outcome: Outcome, state: unknown = {}): this {
    const channels = toValue("the state", state);
    return this.runEnds((run) => ({ run, outcome, state: channels }));
  }

  /**
   * Sets the script of run starts, which can throw to reject a start. Without a script, every start
   * succeeds.
   */
  starts(script: Script<Start, void>): this {
    this.#state.starts = script;
    return this;
  }

  /**
   * Sets the script of resumes, which can throw to reject a resume. Without a script, every resume
   * succeeds.
   */
  resumes(script: Script<Resume, void>): this {
    this.#state.resumes = script;
    return this;
  }

  /** Adds a thread. */
  thread(thread: Partial<ThreadFields> & Pick<ThreadFields, "threadId" | "graph">): this {
    this.#state.threads.set(thread.threadId, new Thread(thread));
    return this;
  }

  /** Appends an event to a thread. The first event has the sequence number 1. */
  event(threadId: string, event: unknown): this {
    this.#state.events.push({ threadId, event: toValue("the event", event) });
    return this;
  }

  /** Advances both the wall clock and the monotonic clock. */
  advanceMs(ms: number): void {
    this.#state.nowMs += ms;
    this.#state.monotonicNs += ms * 1_000_000;
  }

  /** Returns the requests of model calls. */
  llmRequests(): LlmRequest[] {
    return [...this.#state.notes.llm];
  }

  /** Returns the image requests that succeeded. */
  imageRequests(): ImageRequest[] {
    return [...this.#state.notes.images];
  }

  /** Returns the tool calls in order. */
  toolCalls(): Call[] {
    return [...this.#state.notes.tools];
  }

  /**
   * Returns the names and configurations of the routes that were set for the tenant, including their
   * keys.
   */
  setRoutes(): Array<[route: string, config: Json]> {
    return [...this.#state.notes.routes];
  }

  /** Returns the HTTP requests. */
  httpRequests(): HttpRequest[] {
    return [...this.#state.notes.http];
  }

  /** Returns the SQL statements, including `BEGIN`, `COMMIT` and `ROLLBACK`. */
  statements(): Statement[] {
    return [...this.#state.notes.statements];
  }

  /** Returns the questions of the interrupts. */
  questions(): Question[] {
    return [...this.#state.notes.questions];
  }

  /** Returns the names and data of custom events. */
  emitted(): Array<[name: string, data: Json]> {
    return [...this.#state.notes.emitted];
  }

  /** Returns the messages and fractions of reported progress. */
  progress(): Array<[message: string, fraction: number | undefined]> {
    return [...this.#state.notes.progress];
  }

  /** Returns the log messages. */
  logged(): Logged[] {
    return [...this.#state.notes.logged];
  }

  /** Returns the requests of started runs. */
  started(): Start[] {
    return [...this.#state.notes.started];
  }

  /** Returns the requests of resumed threads. */
  resumed(): Resume[] {
    return [...this.#state.notes.resumed];
  }

  /** Returns the cancelled runs. */
  cancelled(): RunRef[] {
    return [...this.#state.notes.cancelled];
  }
}

function responseOf(scripted: ScriptedResponse): HttpResponse {
  if (scripted instanceof HttpResponse) return scripted;
  const { status = 200, headers = [], text = "", json } = scripted;
  const body = encodeUtf8(json === undefined ? text : write("the response body", json));
  return new HttpResponse({ status, headers, body });
}

function executedOf(scripted: ScriptedRows): Executed {
  if (typeof scripted === "number") return { rowsAffected: scripted, returned: new Rows() };
  return scripted instanceof Rows
    ? { rowsAffected: scripted.length, returned: scripted }
    : scripted;
}

function outputOf(returned: ToolReturn): ToolOutput {
  if (returned instanceof ToolOutput) return returned;
  return typeof returned === "string" ? ToolOutput.text(returned) : ToolOutput.json(returned);
}
