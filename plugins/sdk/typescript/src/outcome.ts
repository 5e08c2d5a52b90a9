// The outcome of a node: updates of channels, and the nodes to run next.

import { Failure } from "./failure.ts";
import { type Extra, type Json, toValue } from "./json.ts";

/** Target for {@link Outcome.goto} that ends this branch of the graph. */
export const END = "END";

/** Key of {@link Send.extra} that contains the timeout of each attempt, in milliseconds. */
const TIMEOUT_MS = "timeout_ms";

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
