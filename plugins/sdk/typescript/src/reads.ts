// The channels that a node reads, apart from the type of its input.

/** A reference to channels of the graph that runs a node. */
export type ChannelRef =
  /** The channel with this name. */
  | { channel: string }
  /**
   * The channels that the configuration of the node has under this key: a name or a list of names.
   * Without the key it is the channel `default`, or no channel.
   */
  | { config: string; default?: string };

/**
 * The channels that a node reads.
 *
 * Without it, a node reads the channels that are fields of its input type, or the whole state if the
 * input is `z.unknown()`. A node whose configuration names its channels declares them with a
 * {@link ChannelRef} for each key. It gets no other channels, however large they are.
 *
 * A node with a conversation reads only the current turn of it, see {@link Context.conversation}.
 *
 * ```ts
 * import { type ChannelRef, node } from "wattle-plugin";
 * import { runNode } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const MESSAGES: ChannelRef = { config: "messages", default: "messages" };
 * const TITLE: ChannelRef = { channel: "title" };
 *
 * const count = node(
 *   "count",
 *   {
 *     doc: "Counts the messages.",
 *     output: z.unknown(),
 *     config: z.object({ messages: z.string().optional().describe("Default: `messages`.") }),
 *     reads: { channels: [MESSAGES, TITLE], conversation: MESSAGES },
 *   },
 *   (_input, context) => ({ title: `${context.conversation().length} messages` }),
 * );
 *
 * const decision = runNode(count, { messages: [{ role: "user", content: "hi" }] });
 * assert.equal(decision.update("title"), "1 messages");
 * ```
 */
export interface Reads {
  /**
   * The channels, in place of those that the input type names. What is no channel of the graph is left
   * out. The function of the node gets them by the type of its input, `z.unknown()` for all.
   */
  channels?: readonly ChannelRef[];
  /**
   * The channel with the conversation, one of `channels`; without `channels`, one that the input type
   * names. If several of `channels` name it, the node reads the whole conversation and not only the
   * current turn.
   */
  conversation?: ChannelRef;
}
