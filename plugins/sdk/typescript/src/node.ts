// Graph nodes: their descriptions and functions. `context.ts` has the context of a node, and
// `outcome.ts` its outcome.

import type { input, output } from "zod/v4/core";
import { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import { type Extra, fromValue, type Json, read, type Type, toValue } from "./json.ts";
import { checkName, checkSynchronous } from "./name.ts";
import { type Decision, Outcome } from "./outcome.ts";
import type { Reads } from "./reads.ts";
import { emptyObjectSchema, inputSchema, outputSchema } from "./schema.ts";

/** End of the message about updates that do not fit the type of the node. */
const TYPE_HINT = "; `npm run check` finds wrong types before a run";

/** The input of a node that reads no channels, or the arguments of a tool without arguments. */
export type Empty = Record<string, never>;

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
