// The reply to the last user message of a conversation, and the steps that led to it.

import type { Json } from "../json.ts";
import { readStored, resultOf, type Stored, type StoredCall, textOf } from "./stored.ts";

/** A step that led to a reply. */
export type ReplyStep =
  /** A model turn: its text and the tool calls that it requested. */
  | { type: "model"; content: string; toolCalls: StoredCall[] }
  /** A tool call: its arguments and its result. */
  | {
      type: "tool";
      callId: string;
      tool: string;
      arguments: Json;
      status: string;
      result: Json;
    };

/** The reply to the last user message, with its steps. */
export interface LastReply {
  /** Text of the last model turn; empty if it has none. */
  text: string;
  /** In order. */
  steps: ReplyStep[];
}

/** Reads the channel with the conversation. */
export function lastReply(channel: Json | undefined): LastReply {
  const all = readStored(channel);
  const since = all.slice(all.findLastIndex(({ role }) => role === "user") + 1);
  const last: LastReply = { text: "", steps: [] };
  for (const message of since) {
    if (message.role === "assistant") {
      const content = textOf(message.content);
      last.text = content;
      last.steps.push({ type: "model", content, toolCalls: message.toolCalls });
    } else if (message.role === "tool") {
      last.steps.push(toolStep(message, since));
    }
  }
  return last;
}

function toolStep(message: Stored, since: readonly Stored[]): ReplyStep {
  const { toolCallId: callId, name: tool, status } = message;
  const call = since.flatMap(({ toolCalls }) => toolCalls).find(({ id }) => id === callId);
  const args = call?.arguments ?? null;
  return { type: "tool", callId, tool, arguments: args, status, result: resultOf(message) };
}
