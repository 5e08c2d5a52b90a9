// Graph nodes: the context of a node and its outcome.

import type { input, output } from "zod/v4/core";
import { CONVERSATION, type Conversation, conversationIn } from "./conversation.ts";
import { Failure } from "./failure.ts";
import { type Extra, fromValue, type Json, optionally, read, type Type, toValue } from "./json.ts";
import { checkName, checkSynchronous } from "./name.ts";
import type { Reads } from "./reads.ts";
import { emptyObjectSchema, inputSchema, outputSchema } from "./schema.ts";

/** End of the message about updates that do not fit the type of the node. */
const TYPE_HINT = "; `npm run check` finds wrong types before a run";

/** Target for {@link Outcome.goto} that ends this branch of the graph. */
export const END = "END";

/** Key of {@link Context.extra} that contains the configuration of the node. */
export const CONFIG = "config";

/** Key of {@link Context.extra} that contains the failure for an error handler. */
const ERROR = "error";

/** Key of {@link Send.extra} that contains the timeout of each attempt, in milliseconds. */
const TIMEOUT_MS = "timeout_ms";

/** The input of a node that reads no channels, or the arguments of a tool without arguments. */
export type Empty = Record<string, never>;

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

/** A write to one state channel. */
export interface Update {
  /** Name of the channel to write. */
  channel: string;
  /** Value that the reducer combines with the channel. */
  value: Json;
  /** True to replace the value of the channel instead of calling the reducer. */
  overwrite: boolean;
}

/** A task for the next superstep with its own input instead of the state. */
export interface Send {
  /** Name of the node. */
  node: string;
  /** Input of the task. */
  input: Json;
  /** Extension fields. */
  extra: Extra;
}

/**
 * Updates of channels together with the nodes to run next.
 *
 * A node that only writes channels returns an object of updates. `Outcome` adds targets, sends and
 * overwrites.
 *
 * ```ts
 * import { node, Outcome } from "wattle-plugin";
 * import * as z from "zod";
 *
 * const revise = node("revise", { output: z.object({ draft: z.string() }) }, () =>
 *   new Outcome({ draft: "better" }).overwrite("draft").goto("review").send("notify", { n: 1 }),
 * );
 * assert.ok(revise.run({}) instanceof Outcome);
 * ```
 */
export class Outcome<U = unknown> {
  /** The updates, an object with one field for each channel. */
  readonly updates: U;
  readonly #goto: string[] = [];
  readonly #sends: Send[] = [];
  readonly #overwrites: string[] = [];
  readonly #extra: Extra = {};

  /** Creates an outcome that writes the updates and follows the edges of the graph. */
  constructor(updates: U) {
    this.updates = updates;
  }

  /** Creates an outcome without updates. */
  static nothing(): Outcome<never> {
    return new Outcome({} as never);
  }

  /**
   * Selects a node to run next, instead of the nodes to which the edges lead. Repeated calls select
   * several nodes. See {@link END}.
   */
  goto(node: string): this {
    this.#goto.push(node);
    return this;
  }

  /**
   * Runs a node in the next superstep with its own input instead of the state. Repeated calls send
   * several tasks.
   */
  send(node: string, input: unknown): this {
    return this.#send(node, input, {});
  }

  /** Like {@link send}, with a timeout in milliseconds for each attempt of the task. */
  sendWithin(node: string, input: unknown, timeoutMs: number): this {
    return this.#send(node, input, { [TIMEOUT_MS]: timeoutMs });
  }

  /**
   * Makes the update of a channel an overwrite, which replaces the value instead of passing it to the
   * reducer. The node fails with `internal` if the updates do not contain the channel.
   */
  overwrite(channel: string): this {
    this.#overwrites.push(channel);
    return this;
  }

  /**
   * Applies the whole outcome to the parent graph, which runs this graph as a node. The updates apply
   * to channels of the parent, `goto` and sends to nodes of the parent, and this graph ends. Invalid
   * in a root graph.
   */
  forParent(): this {
    return this.withExtra("parent", true);
  }

  /** Adds an extension field. */
  withExtra(key: string, value: unknown): this {
    this.#extra[key] = toValue(`the extension field \`${key}\``, value);
    return this;
  }

  /** Splits the updates by channel. */
  decide(updates: Extra): Decision {
    const writes = Object.entries(updates).map(([channel, value]) => {
      return { channel, value, overwrite: this.#overwrites.includes(channel) };
    });
    const missing = this.#overwrites.find((channel) => !Object.hasOwn(updates, channel));
    if (missing !== undefined) {
      throw Failure.internal(`overwrite channel \`${missing}\`: the updates do not write it`);
    }
    return new Decision(writes, this.#goto, this.#sends, this.#extra);
  }

  #send(node: string, input: unknown, extra: Extra): this {
    this.#sends.push({ node, input: toValue(`the input sent to \`${node}\``, input), extra });
    return this;
  }
}

/** The outcome of a node with one update per channel. */
export class Decision {
  /** Writes to the state. */
  readonly updates: Update[];
  /** Nodes to run next, instead of those to which the edges lead. */
  readonly goto: string[];
  /** Tasks for the next superstep, each with its own input. */
  readonly sends: Send[];
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a decision. */
  constructor(updates: Update[], goto: string[], sends: Send[], extra: Extra) {
    this.updates = updates;
    this.goto = goto;
    this.sends = sends;
    this.extra = extra;
  }

  /** Returns the value that is written to a channel, or `undefined` if there is none. */
  update(channel: string): Json | undefined {
    return this.updates.find((update) => update.channel === channel)?.value;
  }
}

/** What a node is, besides its name and function. */
export interface NodeDescription<
  I extends Type = Type<Empty>,
  O extends Type = Type<Empty, Empty>,
  C extends Type = Type<Json>,
> {
  /** One paragraph for people. */
  doc?: string;
  /**
   * Type of the input. Its fields are the channels that the node reads; `z.unknown()` reads the whole
   * state. Without a type the node reads no channels. With {@link Reads.channels}, the fields are those
   * that the function gets of the channels.
   */
  input?: I;
  /**
   * Type of the updates. Its fields are the channels that the node writes; a field that is undefined
   * is not written. `z.unknown()` permits every channel. Without a type the node writes no channels.
   */
  output?: O;
  /** Type of the configuration, see {@link Context.config}. */
  config?: C;
  /** The channels that the node reads, if the type of the input does not name them all. */
  reads?: Reads;
}

/** The function of a node. */
export type NodeFunction<I extends Type, O extends Type, C extends Type> = (
  input: output<I>,
  context: Context<output<C>>,
) => input<O> | Outcome<input<O>>;

/** A node as the host sees it. */
export interface NodeEntry {
  /** Kind of the entry. */
  readonly kind: "node";
  /** Name of the node, by which graphs refer to it. */
  readonly name: string;
  /** One paragraph for people. */
  readonly doc: string;
  /** JSON Schema of the input. */
  readonly inputSchema: Json;
  /** JSON Schema of the updates. */
  readonly outputSchema: Json;
  /** JSON Schema of the configuration, if the node has one. */
  readonly configSchema: Json | undefined;
  /** The channels that the node reads; `undefined` for those that the input type names. */
  readonly reads: Reads | undefined;
  /** Runs the node with an input as JSON text. */
  runText(context: Context<unknown>, text: string): Decision;
}

/** A node of a graph. {@link node} creates it. */
export class Node<I extends Type, O extends Type, C extends Type> implements NodeEntry {
  readonly kind = "node";
  readonly name: string;
  readonly doc: string;
  readonly inputSchema: Json;
  readonly outputSchema: Json;
  readonly configSchema: Json | undefined;
  readonly reads: Reads | undefined;
  readonly #description: NodeDescription<I, O, C>;
  readonly #function: NodeFunction<I, O, C>;

  /** Creates a node. */
  constructor(name: string, description: NodeDescription<I, O, C>, run: NodeFunction<I, O, C>) {
    checkName("node", name);
    const { input, output, config } = description;
    this.name = name;
    this.doc = description.doc ?? "";
    const of = (part: string) => `the ${part} of node \`${name}\``;
    this.inputSchema = input ? inputSchema(of("input"), input) : emptyObjectSchema();
    this.outputSchema = output ? outputSchema(of("output"), output) : emptyObjectSchema();
    this.configSchema = config && inputSchema(of("configuration"), config);
    this.reads = description.reads;
    this.#description = description;
    this.#function = run;
  }

  /** Runs the function of the node, for tests. */
  run(input: output<I>, context: Context<unknown> = new Context()): input<O> | Outcome<input<O>> {
    const named = new Context({ ...context, node: this.name });
    const returned = this.#function(input, named.as(this.#description.config));
    checkSynchronous(`node \`${this.name}\``, returned);
    return returned;
  }

  runText(context: Context<unknown>, text: string): Decision {
    const what = `the input of node \`${this.name}\``;
    const { input } = this.#description;
    const returned = this.run((input ? read(what, text, input) : {}) as output<I>, context);
    const outcome = returned instanceof Outcome ? returned : new Outcome(returned);
    return outcome.decide(this.#updates(outcome.updates));
  }

  /** Checks the updates by their type. */
  #updates(updates: unknown): Extra {
    const what = `the updates of node \`${this.name}\``;
    if (typeof updates !== "object" || updates === null || Array.isArray(updates)) {
      throw Failure.internal(`${what} are not an object; return one field for each channel`);
    }
    const { output } = this.#description;
    const valid = output === undefined ? {} : this.#validated(what, updates, output);
    const written = toValue(what, valid) as Extra;
    const isLost = ([channel, value]: [string, unknown]) =>
      value !== undefined && !Object.hasOwn(written, channel);
    const lost = Object.entries(updates).find(isLost);
    if (lost !== undefined) {
      throw Failure.internal(
        `${what} write the channel \`${lost[0]}\`, which \`output\` of the node does not have`,
      );
    }
    return written;
  }

  /** Converts the updates to their type. Invalid updates are a defect, since the plugin made them. */
  #validated(what: string, updates: object, output: Type): unknown {
    try {
      return fromValue(what, updates, output);
    } catch (error) {
      const { details, message } = Failure.from(error);
      const { path } = (details ?? {}) as Extra;
      // What a check of the type throws itself has no path.
      if (path === undefined) throw Failure.internal(message, { details });
      // The issue of a misspelled field is about the missing one, which has the path.
      const unknown = unknownFields(this.outputSchema, updates).filter((name) => name !== path);
      const fields = unknown.map((name) => `; \`output\` of the node has no field \`${name}\``);
      throw Failure.internal(`${message}${fields.join("")}${TYPE_HINT}`, { details });
    }
  }
}

/** Returns the names of updates that the schema of an output does not have. */
function unknownFields(schema: Json, updates: object): string[] {
  const { properties, additionalProperties = false } = schema as Extra;
  // Any name fits a schema without properties, or one that describes further properties.
  if (typeof properties !== "object" || properties === null) return [];
  if (additionalProperties !== false) return [];
  const written = Object.entries(updates).filter(([, value]) => value !== undefined);
  return written.map(([name]) => name).filter((name) => !Object.hasOwn(properties, name));
}

/**
 * Declares a graph node. The fields of the input are the state channels that the node reads, and the
 * fields of the output are those that it writes. The component carries their schemas and the
 * documentation, so the host refuses a graph that does not fit when it loads the graph.
 *
 * ```ts
 * import { node } from "wattle-plugin";
 * import * as z from "zod";
 *
 * export const countWords = node(
 *   "count_words",
 *   {
 *     doc: "Counts the words of a text.",
 *     input: z.object({ text: z.string() }),
 *     output: z.object({ words: z.int() }),
 *   },
 *   ({ text }) => ({ words: text.split(/\s+/).length }),
 * );
 *
 * assert.deepEqual(countWords.run({ text: "a b c" }), { words: 3 });
 * ```
 */
export function node<
  I extends Type = Type<Empty>,
  O extends Type = Type<Empty, Empty>,
  C extends Type = Type<Json>,
>(name: string, description: NodeDescription<I, O, C>, run: NodeFunction<I, O, C>): Node<I, O, C> {
  return new Node(name, description, run);
}
