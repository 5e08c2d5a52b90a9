// Tools that a plugin provides to models and to other nodes. `tools.ts` has the calls of tools.

import type { output } from "zod/v4/core";
import { Failure, settled } from "./failure.ts";
import {
  type Extra,
  fromValue,
  type Json,
  optionally,
  parse,
  type Type,
  toValue,
  write,
} from "./json.ts";
import { type Part, textsOf, toPart } from "./message.ts";
import { checkName, checkSynchronous } from "./name.ts";
import type { Empty } from "./node.ts";
import type { Update } from "./outcome.ts";
import { emptyObjectSchema, inputSchema } from "./schema.ts";

/** Key of {@link ToolContext.extra} that contains the state of the caller. */
const STATE = "state";

/** The fields of a {@link ToolContext}. */
export interface ToolContextFields {
  /** Name of the tool in the plugin. */
  tool: string;
  /** Id of the call, with which the caller matches the result. */
  callId: string;
  /** Id of the thread, if the call belongs to a run. */
  threadId: string | undefined;
  /** Id of the task, if the call belongs to a run. */
  taskId: string | undefined;
  /** Tenant of the thread, if it has one. */
  tenant: string | undefined;
  /**
   * Violations of the arguments schema, one sentence per violation; empty if the arguments are valid.
   */
  violations: string[];
  /** Extension fields. */
  extra: Extra;
}

/** The context in which a tool is called. */
export class ToolContext implements ToolContextFields {
  readonly tool: string;
  readonly callId: string;
  readonly threadId: string | undefined;
  readonly taskId: string | undefined;
  readonly tenant: string | undefined;
  readonly violations: string[];
  readonly extra: Extra;

  /** Creates a context, for tests. */
  constructor(fields: Partial<ToolContextFields> = {}) {
    this.tool = fields.tool ?? "";
    this.callId = fields.callId ?? "";
    this.threadId = fields.threadId;
    this.taskId = fields.taskId;
    this.tenant = fields.tenant;
    this.violations = fields.violations ?? [];
    this.extra = fields.extra ?? {};
  }

  /** Returns the visible state of the caller as JSON. */
  state(): Json;
  /**
   * Returns the visible state of the caller as a type. The agent of the plugin `std` passes the
   * channels that its configuration lists under `state`. If the caller passes no state, the type is
   * read from an empty object.
   *
   * ```ts
   * import { ToolContext } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const context = new ToolContext().withState({ total: 3 });
   * assert.equal(context.state(z.object({ total: z.int() })).total, 3);
   * ```
   *
   * @throws `invalid` if the state does not fit the type.
   */
  state<T extends Type>(type: T): output<T>;
  state(type?: Type): unknown {
    return optionally("the caller's state", this.extra[STATE] ?? {}, type);
  }

  /** Sets the state of the caller, for tests. */
  withState(state: unknown): ToolContext {
    const extra = { ...this.extra, [STATE]: toValue("the caller's state", state) };
    return new ToolContext({ ...this, extra });
  }
}

/**
 * Hints about the effects of a tool, which its author declares. The host does not enforce them.
 * Callers may rely on them, for example to repeat a call after a crash.
 */
export interface ToolHints {
  /** True if a call has no effects. */
  readOnly: boolean;
  /** True if a repeated call with the same arguments has no further effect. */
  idempotent: boolean;
}

/** Key of {@link ToolInfo.extra} that contains the hints. */
export const HINTS = "hints";

/** Key of {@link ToolInfo.extra} that contains the tool reference. */
const REFERENCE = "reference";

/** Key of {@link ToolInfo.extra} that contains the failure of an unavailable tool source. */
const UNAVAILABLE = "unavailable";

/** Suffix that marks an entry as an unavailable tool source. */
const ALL = "/*";

/** The fields of a {@link ToolInfo}. */
export interface ToolInfoFields {
  /** Name of the tool. */
  name: string;
  /** Description of the tool. */
  description: string;
  /** JSON Schema of the arguments. */
  argumentsSchema: Json;
  /**
   * True if the host calls the tool with arguments that violate the schema. Otherwise the host rejects
   * them.
   */
  acceptsInvalid: boolean;
  /** Extension fields. */
  extra: Extra;
}

/** The description of a tool for models. */
export class ToolInfo implements ToolInfoFields {
  readonly name: string;
  readonly description: string;
  readonly argumentsSchema: Json;
  readonly acceptsInvalid: boolean;
  readonly extra: Extra;

  /** Creates a description, for tests. */
  constructor(fields: Partial<ToolInfoFields> = {}) {
    this.name = fields.name ?? "";
    this.description = fields.description ?? "";
    this.argumentsSchema = fields.argumentsSchema ?? emptyObjectSchema();
    this.acceptsInvalid = fields.acceptsInvalid ?? false;
    this.extra = fields.extra ?? {};
  }

  /** Builds the list entry of an unavailable tool source such as `mcp:graph`, for tests. */
  static missing(source: string, failure: Failure): ToolInfo {
    return new ToolInfo({ name: source + ALL, extra: { [UNAVAILABLE]: failure.toJSON() } });
  }

  /** Returns the declared hints of the tool. Both are false if it declares none. */
  hints(): ToolHints {
    const hints = this.extra[HINTS];
    const fields = typeof hints === "object" && hints !== null ? (hints as Extra) : {};
    return { readOnly: fields.read_only === true, idempotent: fields.idempotent === true };
  }

  /**
   * Returns the tool reference, such as `date/parse` or `mcp:graph/list`. A tool is listed under its
   * bare name while no other granted tool has the same name; its reference never changes. Returns
   * `undefined` for a tool that the host did not list.
   */
  reference(): string | undefined {
    const reference = this.extra[REFERENCE];
    return typeof reference === "string" ? reference : undefined;
  }

  /** Sets the tool reference, for tests. */
  withReference(reference: string): ToolInfo {
    return new ToolInfo({ ...this, extra: { ...this.extra, [REFERENCE]: reference } });
  }

  /** Returns the name and the failure of an unavailable tool source, or `undefined` for a tool. */
  source(): { source: string; failure: Failure } | undefined {
    const failure = Failure.read(this.extra[UNAVAILABLE]);
    if (failure === undefined) return undefined;
    const { name } = this;
    return { source: name.endsWith(ALL) ? name.slice(0, -ALL.length) : name, failure };
  }
}

/** The fields of a {@link ToolOutput}. */
export interface ToolOutputFields {
  /** Content for the model. */
  content: Part[];
  /** Structured output for programs. */
  structured: Json | undefined;
  /** True if the content is an error message for the model. */
  isError: boolean;
  /** Writes to the state of the graph that called the tool. */
  updates: Update[];
  /** Extension fields. */
  extra: Extra;
}

/**
 * The output of a tool.
 *
 * ```ts
 * import { tool, ToolOutput } from "wattle-plugin";
 * import * as z from "zod";
 *
 * const add = tool(
 *   "add",
 *   { description: "Adds two numbers.", arguments: z.object({ a: z.int(), b: z.int() }) },
 *   ({ a, b }) => ToolOutput.json({ sum: a + b }),
 * );
 *
 * assert.equal(add.call({ a: 1, b: 2 }).textContent(), '{"sum":3}');
 * ```
 */
export class ToolOutput implements ToolOutputFields {
  readonly content: Part[];
  readonly structured: Json | undefined;
  readonly isError: boolean;
  readonly updates: Update[];
  readonly extra: Extra;

  /** Creates an output. */
  constructor(fields: Partial<ToolOutputFields> = {}) {
    this.content = fields.content ?? [];
    this.structured = fields.structured;
    this.isError = fields.isError ?? false;
    this.updates = fields.updates ?? [];
    this.extra = fields.extra ?? {};
  }

  /** Creates an output with a text. */
  static text(text: string): ToolOutput {
    return new ToolOutput({ content: [toPart(text)] });
  }

  /**
   * Creates an output from a value: structured output for programs, and the same JSON as text for the
   * model.
   */
  static json(value: unknown): ToolOutput {
    const text = write("the output of the tool", value);
    return new ToolOutput({ content: [toPart(text)], structured: JSON.parse(text) as Json });
  }

  /** Creates an error message for the model, which can react to it. */
  static error(text: string): ToolOutput {
    return new ToolOutput({ content: [toPart(text)], isError: true });
  }

  /** Adds a part to the content, such as an image. */
  withPart(part: Part | string): ToolOutput {
    return new ToolOutput({ ...this, content: [...this.content, toPart(part)] });
  }

  /** Writes to a channel of the graph that called the tool. */
  withUpdate(channel: string, value: unknown): ToolOutput {
    return this.#withWrite(channel, value, false);
  }

  /**
   * Overwrites a channel of the graph that called the tool. If several calls of one task overwrite a
   * channel, the last one takes effect.
   */
  withOverwrite(channel: string, value: unknown): ToolOutput {
    return this.#withWrite(channel, value, true);
  }

  /** Returns all text parts, with a line break between them. */
  textContent(): string {
    return textsOf(this.content).join("\n");
  }

  /**
   * Returns the structured output as a type.
   *
   * @throws `invalid` if the tool returned no structured output, or if it does not fit the type.
   */
  structuredAs<T extends Type>(type: T): output<T> {
    if (this.structured === undefined) {
      throw Failure.invalid("the tool returned no structured output; read its text instead");
    }
    return fromValue("the output of the tool", this.structured, type);
  }

  /**
   * Returns the structured output, or else the text of the output as JSON: servers of the Model Context
   * Protocol may return a document only as text, also cut into several parts.
   *
   * ```ts
   * import { ToolOutput } from "wattle-plugin";
   *
   * assert.deepEqual(ToolOutput.json([1]).document(), [1]);
   * assert.deepEqual(ToolOutput.text("[1]").document(), [1]);
   * assert.throws(() => ToolOutput.text("one").document());
   * ```
   *
   * @throws `invalid` if the text is not JSON.
   */
  document(): Json {
    if (this.structured !== undefined) return this.structured;
    const what = "the output of the tool";
    try {
      return parse(what, this.textContent());
    } catch (error) {
      // Parts without line breaks between them come second: a server may cut within a string.
      const document = settled(() => parse(what, textsOf(this.content).join("")));
      if (document instanceof Failure) throw error;
      return document;
    }
  }

  #withWrite(channel: string, value: unknown, overwrite: boolean): ToolOutput {
    const update = { channel, value: toValue(`the channel \`${channel}\``, value), overwrite };
    return new ToolOutput({ ...this, updates: [...this.updates, update] });
  }
}

/** Arguments of a tool that also accepts arguments that violate its schema, see {@link unchecked}. */
export class Unchecked<T> {
  /** The arguments as the caller passed them. */
  readonly raw: Json;
  /** Violations of the schema, one sentence per violation; empty if the arguments are valid. */
  readonly violations: string[];
  readonly #type: Type;

  /** Creates arguments, for tests and for tools that call other tools. */
  constructor(type: Type<T>, raw: Json, violations: string[] = []) {
    this.#type = type;
    this.raw = raw;
    this.violations = violations;
  }

  /**
   * Returns the arguments as their type.
   *
   * @throws `invalid` if the arguments do not fit the type.
   */
  parse(): T {
    return fromValue("the arguments", this.raw, this.#type) as T;
  }
}

/** The type of {@link Unchecked} arguments. {@link unchecked} creates it. */
export class UncheckedType<T> {
  /** The type of valid arguments. */
  readonly type: Type<T>;

  /** Creates the type. */
  constructor(type: Type<T>) {
    this.type = type;
  }
}

/**
 * Makes a tool accept arguments that violate their type. The tool gets {@link Unchecked} arguments.
 *
 * ```ts
 * import { tool, ToolOutput, unchecked } from "wattle-plugin";
 * import * as z from "zod";
 *
 * const record = tool(
 *   "record",
 *   { description: "Records an expense.", arguments: unchecked(z.object({ amount: z.number() })) },
 *   (args) => {
 *     const violation = args.violations[0];
 *     if (violation !== undefined) return ToolOutput.error(`ask the user: ${violation}`);
 *     return String(args.parse().amount);
 *   },
 * );
 * assert.ok(record.acceptsInvalid);
 * ```
 */
export function unchecked<T extends Type>(type: T): UncheckedType<output<T>> {
  return new UncheckedType(type as Type<output<T>>);
}

/** The arguments of a tool: a type, or {@link unchecked} around one. */
export type ToolArguments = Type | UncheckedType<unknown>;

/** What a tool gets of its arguments. */
export type ArgumentsOf<A extends ToolArguments> =
  A extends UncheckedType<infer T> ? Unchecked<T> : A extends Type ? output<A> : never;

/** What a tool is, besides its name and function. */
export interface ToolDescription<A extends ToolArguments = Type<Empty>> {
  /** Description for models. */
  description: string;
  /** Type of the arguments. Models read the descriptions of its fields. Without a type, there are none. */
  arguments?: A;
  /** Declares that a call has no effects. */
  readOnly?: boolean;
  /** Declares that a repeated call with the same arguments has no further effect. */
  idempotent?: boolean;
}

/**
 * What a tool returns: an output, a text for the model, or another value, which is the structured
 * output of {@link ToolOutput.json}.
 */
export type ToolReturn = ToolOutput | string | number | boolean | null | object;

/** The function of a tool. */
export type ToolFunction<A extends ToolArguments> = (
  args: ArgumentsOf<A>,
  context: ToolContext,
) => ToolReturn;

/** A tool as the host sees it. */
export interface ToolEntry {
  /** Kind of the entry. */
  readonly kind: "tool";
  /** Name of the tool. */
  readonly name: string;
  /** Description for models. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly argumentsSchema: Json;
  /** True if the tool accepts arguments that violate the schema. */
  readonly acceptsInvalid: boolean;
  /** Declared hints about the effects of the tool. */
  readonly hints: ToolHints;
  /** Calls the tool with arguments as JSON text. */
  callText(context: ToolContext, text: string): ToolOutput;
}

/** A tool. {@link tool} creates it. */
export class Tool<A extends ToolArguments> implements ToolEntry {
  readonly kind = "tool";
  readonly name: string;
  readonly description: string;
  readonly argumentsSchema: Json;
  readonly acceptsInvalid: boolean;
  readonly hints: ToolHints;
  readonly #type: Type | undefined;
  readonly #function: ToolFunction<A>;

  /** Creates a tool. */
  constructor(name: string, description: ToolDescription<A>, call: ToolFunction<A>) {
    checkName("tool", name);
    const { arguments: args, readOnly = false, idempotent = false } = description;
    this.name = name;
    this.description = description.description;
    this.acceptsInvalid = args instanceof UncheckedType;
    this.#type = args instanceof UncheckedType ? args.type : args;
    const what = `the arguments of tool \`${name}\``;
    this.argumentsSchema = this.#type ? inputSchema(what, this.#type) : emptyObjectSchema();
    this.hints = { readOnly, idempotent };
    this.#function = call;
  }

  /** Calls the function of the tool, for tests. */
  call(args: ArgumentsOf<A>, context: ToolContext = new ToolContext()): ToolOutput {
    const returned = this.#function(args, new ToolContext({ ...context, tool: this.name }));
    checkSynchronous(`tool \`${this.name}\``, returned);
    if (returned instanceof ToolOutput) return returned;
    return typeof returned === "string" ? ToolOutput.text(returned) : ToolOutput.json(returned);
  }

  callText(context: ToolContext, text: string): ToolOutput {
    const args = this.#arguments(context, parse("the arguments", text));
    return this.call(args as ArgumentsOf<A>, context);
  }

  #arguments(context: ToolContext, raw: Json): unknown {
    if (this.#type === undefined) return {};
    if (this.acceptsInvalid) return new Unchecked(this.#type, raw, context.violations);
    return fromValue("the arguments", raw, this.#type);
  }
}

/**
 * Declares a tool. Models read the descriptions of the tool and of the fields of its arguments. The
 * host rejects arguments that violate the schema and does not call the tool, unless the tool takes
 * {@link unchecked} arguments.
 *
 * ```ts
 * import { tool } from "wattle-plugin";
 * import * as z from "zod";
 *
 * export const fahrenheit = tool(
 *   "fahrenheit",
 *   {
 *     description: "Converts a temperature to Fahrenheit.",
 *     arguments: z.object({ celsius: z.number().describe("Degrees Celsius.") }),
 *     readOnly: true,
 *   },
 *   ({ celsius }) => `${celsius * 1.8 + 32} F`,
 * );
 *
 * assert.equal(fahrenheit.call({ celsius: 100 }).textContent(), "212 F");
 * ```
 */
export function tool<A extends ToolArguments = Type<Empty>>(
  name: string,
  description: ToolDescription<A>,
  call: ToolFunction<A>,
): Tool<A> {
  return new Tool(name, description, call);
}
