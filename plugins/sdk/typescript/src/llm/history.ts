// Histories: messages of a request that the host takes from the conversation of a node.

import type { Conversation } from "../conversation.ts";
import { Failure } from "../failure.ts";
import { type Extra, toExtra } from "../json.ts";

/** Extension field of a request that contains its history. */
export const HISTORY = "history";

/**
 * Messages of a request that the host takes from a conversation: a part of it, or one with further
 * messages.
 *
 * ```ts
 * import { type Conversation, llm } from "wattle-plugin";
 *
 * const conversation: Conversation = { channel: "messages", from: 40, length: 42 };
 * const now = { role: "user", content: "It is Monday." };
 * const request = new llm.Request({
 *   route: "chat",
 *   system: "Be brief.",
 *   history: { of: conversation, startingAt: 20, append: [now] },
 * });
 * const history = { channel: "messages", at: 1, from: 20, append: [now] };
 * assert.deepEqual(request.extra.history, history);
 * ```
 */
export interface HistoryOptions {
  /** The conversation, including the messages that the input of the node does not have. */
  of: Conversation;
  /** Leaves out the messages before this position, from 0. */
  startingAt?: number;
  /** Leaves out the message with this id and all messages before it, in place of `startingAt`. */
  after?: string;
  /** Leaves out the messages from this position on. */
  until?: number;
  /**
   * Messages after the conversation, in the format of the reducer `messages`. A tool result follows its
   * call, which can be in the conversation.
   */
  append?: readonly unknown[];
  /**
   * The names under which the model sees tools, by the names of the calls in the conversation. The host
   * replaces characters that providers reject in all other names.
   */
  names?: Readonly<Record<string, string>>;
}

/** Returns a history in the format of the host, for a request with `at` messages before it. */
export function historyOf(history: Conversation | HistoryOptions, at: number): Extra {
  const options: HistoryOptions = "of" in history ? history : { of: history };
  const { of: conversation, startingAt, after, until, append = [], names = {} } = options;
  if (startingAt !== undefined && after !== undefined) {
    throw Failure.internal("a history has `startingAt` and `after`; set one of them");
  }
  return toExtra({
    channel: conversation.channel,
    at,
    from: after === undefined ? (startingAt ?? 0) : { after },
    to: until,
    append: append.length === 0 ? undefined : append,
    names: Object.keys(names).length === 0 ? undefined : names,
  });
}
