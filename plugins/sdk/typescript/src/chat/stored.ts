// Messages of a conversation as they are in the state.

import { fieldsOf, type Json } from "../json.ts";

/** A tool call of a message, without its extension fields. */
export interface StoredCall {
  /** Id that the model gave the call. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Arguments; a text if they are not JSON. */
  arguments: Json;
}

/** A message in the state. */
export interface Stored {
  id: string;
  role: string;
  content: Json;
  toolCalls: StoredCall[];
  toolCallId: string;
  name: string;
  status: string;
  structured: Json;
}

/** Returns the text of a content, which may be a list of parts. */
export function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => textIn(part, "text")).join("");
}

/** Returns a text of an object; empty if there is none. */
export function textIn(value: Json | undefined, key: string): string {
  const text = fieldsOf(value)[key];
  return typeof text === "string" ? text : "";
}

/** Returns the result of a tool: its structured output, or its text without one. */
export function resultOf({ structured, content }: Stored): Json {
  return structured === null ? textOf(content) : structured;
}

/** Returns the tool calls that a message requests. Missing fields are empty. */
export function callsOf(message: Json): StoredCall[] {
  const calls = fieldsOf(message).tool_calls;
  if (!Array.isArray(calls)) return [];
  return calls.map((call) => ({
    id: textIn(call, "id"),
    name: textIn(call, "name"),
    arguments: fieldsOf(call).arguments ?? null,
  }));
}

/**
 * Reads the messages of a channel. Invalid messages are skipped, so that they do not suppress the
 * others.
 */
export function readStored(channel: Json | undefined): Stored[] {
  if (!Array.isArray(channel)) return [];
  return channel.flatMap((message) => storedOf(message) ?? []);
}

/**
 * Returns true if the last message is an assistant message without tool calls. A conversation without a
 * valid last message needs no reply, so the result is true as well.
 */
export function hasReply(channel: Json | undefined): boolean {
  const last = Array.isArray(channel) ? channel.at(-1) : undefined;
  const stored = last === undefined ? undefined : storedOf(last);
  return stored === undefined || (stored.role === "assistant" && stored.toolCalls.length === 0);
}

/** Reads a message; `undefined` if it is invalid. */
function storedOf(message: Json): Stored | undefined {
  const fields = fieldsOf(message);
  const { id = "", role, content = null, tool_calls: calls = [] } = fields;
  const { tool_call_id: toolCallId = "", name = "", status = "", structured = null } = fields;
  if (typeof id !== "string" || typeof role !== "string" || typeof status !== "string") {
    return undefined;
  }
  if (typeof toolCallId !== "string" || typeof name !== "string") return undefined;
  if (!Array.isArray(calls) || !calls.every(isCall)) return undefined;
  const toolCalls = callsOf(message);
  return { id, role, content, toolCalls, toolCallId, name, status, structured };
}

function isCall(call: Json): boolean {
  const { id, name } = fieldsOf(call);
  return typeof id === "string" && typeof name === "string";
}
