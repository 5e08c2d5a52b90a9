// The conversation of a node that a test runs with an input.

import type { Conversation } from "../conversation.ts";
import { fieldsOf, type Json } from "../json.ts";
import type { ChannelRef } from "../reads.ts";

/**
 * Returns a conversation whose messages are all in the input of a node with this configuration.
 * `undefined` if the configuration does not name exactly one channel.
 */
export function wholeConversation(
  declared: ChannelRef,
  config: Json | undefined,
  input: Json,
): Conversation | undefined {
  const channel = channelOf(declared, config);
  if (channel === undefined) return undefined;
  const messages = fieldsOf(input)[channel];
  return { channel, from: 0, length: Array.isArray(messages) ? messages.length : 0 };
}

function channelOf(declared: ChannelRef, config: Json | undefined): string | undefined {
  if ("channel" in declared) return declared.channel;
  const named = fieldsOf(config)[declared.config] ?? null;
  if (named === null) return declared.default;
  return typeof named === "string" ? named : undefined;
}
