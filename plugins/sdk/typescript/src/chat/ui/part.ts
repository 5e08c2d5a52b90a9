// Parts of messages as the SDK writes them.

import type { Json } from "../../json.ts";
import type { StoredCall } from "../stored.ts";
import { TOOL } from "./client.ts";

/** What became of a tool call. */
export type CallState =
  /** The call has no result yet. */
  | { type: "pending" }
  /** The output of the tool. */
  | { type: "output"; output: Json }
  /** The error of the call, for users. */
  | { type: "error"; error: string };

/** Creates the start of a model turn. */
export function stepStart(): Json {
  return { type: "step-start" };
}

/** Creates the text of a message of the user. */
export function userText(text: string): Json {
  return { type: "text", text };
}

/** Creates a text of the assistant. */
export function assistantText(type: "text" | "reasoning", text: string): Json {
  return { type, text, state: "done" };
}

/** Creates a tool call. */
export function toolPart({ id, name, arguments: input }: StoredCall, state: CallState): Json {
  const part = { type: `${TOOL}${name}`, toolCallId: id, input };
  if (state.type === "pending") return { ...part, state: "input-available" };
  return state.type === "output"
    ? { ...part, state: "output-available", output: state.output }
    : { ...part, state: "output-error", errorText: state.error };
}
