// The conversation that a node continues.

import { Failure } from "./failure.ts";
import { type Extra, fieldsOf, type Json } from "./json.ts";

/** Key of the extension fields of a context that contains the conversation. */
export const CONVERSATION = "conversation";

/**
 * The conversation of a node: a list of messages in a channel.
 *
 * The input of the node has only the messages of the current turn: those from the last user message on,
 * or from an earlier message with a tool call that has no result. A request gives all of them to a model
 * with `history`.
 */
export interface Conversation {
  /** Name of the channel, which is also the name of the field of the input. */
  channel: string;
  /** Position of the first message that the input has. */
  from: number;
  /** Number of all messages. */
  length: number;
}

/** Reads the conversation of a node from the extension fields of its context. */
export function conversationIn(extra: Extra, node: string): Conversation {
  const conversation = extra[CONVERSATION];
  if (conversation === undefined) {
    throw Failure.unsupported(
      `node \`${node}\` got no conversation from the host: the version of Wattle is too old for the ` +
        "plugin, or the node declares no conversation; update Wattle, or declare it in `reads`",
    );
  }
  const { channel, from, length } = fieldsOf(conversation);
  if (typeof channel === "string" && isCount(from) && isCount(length)) {
    return { channel, from, length };
  }
  const text = JSON.stringify(conversation);
  throw Failure.invalid(`the conversation in the context is invalid: ${text}`);
}

function isCount(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
