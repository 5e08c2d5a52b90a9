// Requests of model calls.

import * as host from "#host/llm";
import type { Conversation } from "../conversation.ts";
import type { Result } from "../failure.ts";
import type { Extra, Json, Type } from "../json.ts";
import { Message, type Part } from "../message.ts";
import { inputSchema } from "../schema.ts";
import type { ToolInfo } from "../tool.ts";
import type { Completion } from "./completion.ts";
import { HISTORY, type HistoryOptions, historyOf } from "./history.ts";

/** A tool that the model can call. */
export class ToolDefinition {
  /** Name of the tool. */
  readonly name: string;
  /** Description for the model. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly argumentsSchema: Json;
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a tool with the JSON Schema of its arguments. */
  constructor(name: string, description: string, argumentsSchema: Json, extra: Extra = {}) {
    this.name = name;
    this.description = description;
    this.argumentsSchema = argumentsSchema;
    this.extra = extra;
  }

  /** Creates a tool whose arguments have the schema of a type. */
  static of(name: string, description: string, type: Type): ToolDefinition {
    const schema = inputSchema(`the arguments of tool \`${name}\``, type);
    return new ToolDefinition(name, description, schema);
  }
}

/** Controls whether the model calls a tool. */
export type ToolChoice =
  /** The model decides whether to call a tool. */
  | "auto"
  /** The model must not call a tool. */
  | "none"
  /** The model must call a tool. */
  | "required"
  /** The model must call this tool. */
  | { tool: string };

/**
 * The schema for structured output. The host validates the output and lets the model repair it once.
 */
export interface ResponseSchema {
  /** Name of the schema: 1 to 64 characters of `[a-zA-Z0-9_-]`. */
  name: string;
  /** JSON Schema. Its root must be an object. */
  schema: Json;
}

/** A model call. */
export interface RequestOptions {
  /** Name of the route, from the app's manifest. */
  route: string;
  /** A system message before all others. */
  system?: string;
  /** Messages of the conversation, in order. */
  messages?: readonly Message[];
  /**
   * Adds all messages of the conversation of the node, or a part of them, after `messages`. The host adds
   * them when it calls the model, so the request does not grow with the conversation.
   * {@link Request.messages} does not contain them.
   *
   * ```ts
   * import { type ChannelRef, llm, node } from "wattle-plugin";
   * import { FakeHost, runNode } from "wattle-plugin/testing";
   * import * as z from "zod";
   *
   * const MESSAGES: ChannelRef = { channel: "messages" };
   *
   * const answer = node(
   *   "answer",
   *   {
   *     doc: "Answers the last message.",
   *     output: z.object({ messages: z.unknown() }),
   *     reads: { channels: [MESSAGES], conversation: MESSAGES },
   *   },
   *   (_input, context) => {
   *     const history = context.conversation();
   *     const completion = llm.complete({ route: "chat", system: "Be brief.", history });
   *     return { messages: completion.toStored() };
   *   },
   * );
   *
   * const host = new FakeHost().llm(() => llm.Completion.ofText("hello"));
   * const input = { messages: [{ role: "user", content: "hi" }] };
   * const decision = host.run(() => runNode(answer, input));
   * assert.deepEqual(decision.update("messages"), { role: "assistant", content: "hello" });
   * const history = host.llmRequests()[0]?.extra.history;
   * assert.deepEqual(history, { channel: "messages", at: 1, from: 0 });
   * ```
   */
  history?: Conversation | HistoryOptions;
  /** A message of a person after all others. */
  user?: string | Part | ReadonlyArray<string | Part>;
  /** Tools that the model can call, such as those of `tools.list()`. */
  tools?: ReadonlyArray<ToolDefinition | ToolInfo>;
  /** Controls whether the model calls a tool. */
  toolChoice?: ToolChoice;
  /**
   * Requests structured output with the schema of a type, or with a JSON Schema.
   * {@link Completion.structuredAs} returns it.
   */
  schema?: { name: string; type: Type } | ResponseSchema;
  /** Sampling temperature, 0 for the likeliest completion; without it, the default of the route. */
  temperature?: number;
  /** Maximum number of output tokens; without it, the default of the route. */
  maxOutputTokens?: number;
  /** Seed, for providers with reproducible sampling. */
  seed?: number;
  /** Stop sequences: strings that end the completion. */
  stop?: readonly string[];
  /**
   * Calls only the candidate of the route with this number, from 0. {@link RouteInfo.candidates}
   * returns the number of candidates.
   */
  candidate?: number;
  /** Maximum number of retries at each candidate. Overrides the setting of the route. */
  retries?: number;
  /**
   * Idle timeout of the model call in milliseconds: the maximum wait for the first byte of the response
   * and for each further byte. Overrides the setting of the route. The host limits the value.
   */
  timeoutMs?: number;
  /**
   * Disables the repair of output that violates the schema. The call then fails, with the completion in
   * the details of the failure. By default, the host lets the model repair the completion once.
   */
  withoutRepair?: boolean;
  /** Extension fields. */
  extra?: Extra;
}

/** A model call as the host gets it. */
export class Request {
  /** Name of the route. */
  readonly route: string;
  /** Messages of the conversation, in order. */
  readonly messages: Message[];
  /** Tools that the model can call. */
  readonly tools: ToolDefinition[];
  /** Controls whether the model calls a tool. */
  readonly toolChoice: ToolChoice;
  /** Schema for structured output; `undefined` permits any text. */
  readonly responseSchema: ResponseSchema | undefined;
  /** Sampling temperature. */
  readonly temperature: number | undefined;
  /** Maximum number of output tokens. */
  readonly maxOutputTokens: number | undefined;
  /** Seed. */
  readonly seed: number | undefined;
  /** Stop sequences. */
  readonly stop: string[];
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a model call. */
  constructor(options: RequestOptions) {
    const { system, messages = [], history, user, schema } = options;
    const before = [...(system === undefined ? [] : [Message.system(system)]), ...messages];
    const asked = user === undefined ? [] : [new Message("user", user)];
    this.route = options.route;
    this.messages = [...before, ...asked];
    this.tools = (options.tools ?? []).map((tool) => {
      if (tool instanceof ToolDefinition) return tool;
      return new ToolDefinition(tool.name, tool.description, tool.argumentsSchema);
    });
    this.toolChoice = options.toolChoice ?? "auto";
    this.responseSchema = schema && responseSchema(schema);
    this.temperature = options.temperature;
    this.maxOutputTokens = options.maxOutputTokens;
    this.seed = options.seed;
    this.stop = [...(options.stop ?? [])];
    this.extra = {
      ...options.extra,
      ...present("candidate", options.candidate),
      ...present("retries", options.retries),
      ...present("timeout_ms", options.timeoutMs),
      ...present("repair", options.withoutRepair === true ? false : undefined),
      ...present(HISTORY, history && historyOf(history, before.length)),
    };
  }

  /**
   * Returns all text of the messages. For test scripts whose result depends on it. Messages of a history
   * are not in it, because only the host has them.
   */
  text(): string {
    return this.messages.map((message) => message.text()).join("\n");
  }
}

function responseSchema(schema: { name: string; type: Type } | ResponseSchema): ResponseSchema {
  if ("schema" in schema) return schema;
  return { name: schema.name, schema: inputSchema(`the schema \`${schema.name}\``, schema.type) };
}

function present(key: string, value: Json | undefined): Extra {
  return value === undefined ? {} : { [key]: value };
}

/**
 * Calls a model and waits for the whole completion.
 *
 * A plugin calls a model through a route. The operator configures the provider, model and key of the
 * route. Completions are journaled, so a node that is executed again does not pay for them again.
 *
 * ```ts
 * import { llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const Verdict = z.object({ kind: z.string() });
 *
 * const host = new FakeHost().llm((request) => {
 *   assert.equal(request.route, "chat");
 *   return llm.Completion.ofJson({ kind: "operation" });
 * });
 * host.run(() => {
 *   const completion = llm.complete({
 *     route: "chat",
 *     system: "Say what kind of sentence this is.",
 *     user: "I bought 100 shares.",
 *     schema: { name: "verdict", type: Verdict },
 *     temperature: 0,
 *   });
 *   assert.equal(completion.structuredAs(Verdict).kind, "operation");
 * });
 * ```
 */
export function complete(request: RequestOptions): Completion {
  return host.complete(new Request(request));
}

/**
 * Makes several model calls concurrently. Returns the results in the order of the requests.
 *
 * ```ts
 * import { Failure, llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().llm((request) => llm.Completion.ofText(request.text()));
 * host.run(() => {
 *   const results = llm.completeAll(["a", "b"].map((user) => ({ route: "chat", user })));
 *   const texts = results.map((it) => (it instanceof Failure ? it.code : it.text()));
 *   assert.deepEqual(texts, ["a", "b"]);
 * });
 * ```
 */
export function completeAll(requests: readonly RequestOptions[]): Array<Result<Completion>> {
  return host.completeAll(requests.map((request) => new Request(request)));
}
