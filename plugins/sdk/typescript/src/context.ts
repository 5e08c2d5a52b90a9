// The context in which a node runs.

import type { output } from "zod/v4/core";
import { CONVERSATION, type Conversation, conversationIn } from "./conversation.ts";
import { type Extra, fromValue, type Json, optionally, type Type, toValue } from "./json.ts";

/** Key of {@link Context.extra} that contains the configuration of the node. */
export const CONFIG = "config";

/** Key of {@link Context.extra} that contains the failure for an error handler. */
const ERROR = "error";

/** The fields of a {@link Context}. */
export interface ContextFields {
  /** Name of the node in the plugin. */
  node: string;
  /** Name of the graph. */
  graph: string;
  /** Id of the thread. */
  threadId: string;
  /** Id of the run. */
  runId: string;
  /** Id of the task. It does not change when the task is executed again. */
  taskId: string;
  /** Number of the superstep in its thread, from 0. */
  step: number;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Number of supersteps that the recursion limit still permits. */
  remainingSteps: number;
  /** Tenant of the thread, if it has one. */
  tenant: string | undefined;
  /** The run context; `null` if there is none. */
  context: Json;
  /** Extension fields. */
  extra: Extra;
}

/** The context in which a node runs. `C` is the type of the node's configuration. */
export class Context<C = Json> implements ContextFields {
  readonly node: string;
  readonly graph: string;
  readonly threadId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly step: number;
  readonly attempt: number;
  readonly remainingSteps: number;
  readonly tenant: string | undefined;
  readonly context: Json;
  readonly extra: Extra;
  readonly #type: Type | undefined;

  /** Creates a context, for tests. `type` is the type of the configuration. */
  constructor(fields: Partial<ContextFields> = {}, type?: Type) {
    this.node = fields.node ?? "";
    this.graph = fields.graph ?? "";
    this.threadId = fields.threadId ?? "";
    this.runId = fields.runId ?? "";
    this.taskId = fields.taskId ?? "";
    this.step = fields.step ?? 0;
    this.attempt = fields.attempt ?? 1;
    this.remainingSteps = fields.remainingSteps ?? 0;
    this.tenant = fields.tenant;
    this.context = fields.context ?? null;
    this.extra = fields.extra ?? {};
    this.#type = type;
  }

  /**
   * The configuration of the node: the table `with` of the node in the graph file. If the table is
   * missing, the type is read from an empty object, which succeeds if all fields have defaults.
   *
   * The description of the node names the type, and the component publishes its schema, so that the
   * host rejects a graph with an invalid configuration when it loads the graph.
   *
   * ```ts
   * import { Context, node } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const Config = z.strictObject({ route: z.string().default("chat").describe("The model.") });
   *
   * const which = node(
   *   "which",
   *   { doc: "Returns the route that it would call.", output: z.unknown(), config: Config },
   *   (_input, context) => ({ route: context.config.route }),
   * );
   *
   * assert.deepEqual(which.run({}), { route: "chat" });
   * assert.deepEqual(which.run({}, new Context().withConfig({ route: "fast" })), { route: "fast" });
   * ```
   */
  get config(): C {
    const config = this.extra[CONFIG] ?? {};
    return optionally(`the configuration of node \`${this.node}\``, config, this.#type) as C;
  }

  /**
   * Returns the run context as a type.
   *
   * ```ts
   * import { Context } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const context = new Context({ context: { language: "de" } });
   * assert.equal(context.runContext(z.object({ language: z.string() })).language, "de");
   * ```
   */
  runContext<T extends Type>(type: T): output<T> {
    return fromValue("the run's context", this.context, type);
  }

  /**
   * Returns the failure that this node handles. Returns `undefined` unless the node runs as an error
   * handler (`on_error` in the graph file).
   *
   * ```ts
   * import { Context, node } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const apologize = node(
   *   "apologize",
   *   { doc: "Returns the message of the failure.", output: z.object({ answer: z.string() }) },
   *   (_input, context) => ({ answer: context.error()?.message ?? "all is well" }),
   * );
   *
   * const context = new Context().withError({ message: "no seats left" });
   * assert.deepEqual(apologize.run({}, context), { answer: "no seats left" });
   * ```
   */
  error(): NodeError | undefined {
    const error = this.extra[ERROR];
    if (error === undefined || error === null) return undefined;
    const fields = typeof error === "object" && !Array.isArray(error) ? error : {};
    const text = (key: string) => (typeof fields[key] === "string" ? fields[key] : "");
    const message = text("message") || JSON.stringify(error);
    const { details = null } = fields;
    return { node: text("node"), task: text("task"), code: text("code"), message, details };
  }

  /**
   * Returns the conversation that the node declares with {@link Reads.conversation}. Without a list in
   * the channel, or without the channel in the graph, the conversation has no messages.
   *
   * @throws `unsupported` if the node declares no conversation, or if the host is too old for histories.
   */
  conversation(): Conversation {
    return conversationIn(this.extra, this.node);
  }

  /** Sets the failure that the node handles, for tests. */
  withError(error: Partial<NodeError>): Context<C> {
    const { node = "", task = "", code = "", message = "", details = null } = error;
    return this.#with(ERROR, { node, task, code, message, details });
  }

  /** Sets the configuration of the node, for tests. */
  withConfig(config: unknown): Context<C> {
    return this.#with(CONFIG, toValue("the configuration", config));
  }

  /**
   * Sets the conversation of the node, for tests of a later turn. `runNode` sets it for an input with the
   * whole conversation.
   */
  withConversation({ channel, from, length }: Conversation): Context<C> {
    return this.#with(CONVERSATION, { channel, from, length });
  }

  /** Returns the same context for a node whose configuration has another type. */
  as<D>(type: Type | undefined): Context<D> {
    return new Context<D>(this, type);
  }

  #with(key: string, value: Json): Context<C> {
    return new Context<C>({ ...this, extra: { ...this.extra, [key]: value } }, this.#type);
  }
}

/** The failure that an error handler handles. */
export interface NodeError {
  /** Name of the node that failed. */
  node: string;
  /** Id of the failed task. */
  task: string;
  /** Code of the failure, see {@link code}. */
  code: string;
  /** Message of the failure. It contains the name of the node. */
  message: string;
  /** Structured details; `null` if there are none. */
  details: Json;
}
