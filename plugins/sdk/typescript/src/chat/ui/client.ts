// Messages that a client of the AI SDK sends: their parts, and their conversion to those of the state.

import { type Extra, fieldsOf, type Json } from "../../json.ts";
import { trimmed } from "../../whitespace.ts";
import { textIn } from "../stored.ts";

/** Prefix of the type of a tool's part, before the name of the tool. */
export const TOOL = "tool-";

/** The result of a tool call in a message of the AI SDK. */
export type ToolResult =
  /** Output of the tool. */
  | { type: "output"; output: Json }
  /** Error of the tool. */
  | { type: "error"; error: string };

/** A tool call in a message of the AI SDK. */
export interface ToolPart {
  /** Kind of the part. */
  type: "tool";
  /** Name of the tool. */
  name: string;
  /** Id that the model gave the call. */
  callId: string;
  /** Arguments; null if they are unknown. */
  input: Json;
  /** Output or error; `undefined` if the call has no result, yet or at all. */
  result: ToolResult | undefined;
}

/** A part of a message of the AI SDK, with the fields that a conversation needs. */
export type Part =
  /** Text. */
  | { type: "text"; text: string }
  /** Reasoning of the model. */
  | { type: "reasoning"; text: string }
  /** Start of a model call. */
  | { type: "step_start" }
  /** Name of a file. */
  | { type: "file"; name: string }
  | ToolPart
  /** Any other part. */
  | { type: "other" };

/**
 * Parses a part.
 *
 * ```ts
 * import { chat } from "wattle-plugin";
 *
 * const text = chat.ui.partOf({ type: "text", text: "hi" });
 * assert.deepEqual(text, { type: "text", text: "hi" });
 * assert.deepEqual(chat.ui.partOf({ type: "data-weather", data: {} }), { type: "other" });
 * ```
 */
export function partOf(part: Json): Part {
  const type = textIn(part, "type");
  switch (type) {
    case "text":
    case "reasoning":
      return { type, text: textIn(part, "text") };
    case "step-start":
      return { type: "step_start" };
    case "file": {
      const { filename } = fieldsOf(part);
      return { type: "file", name: typeof filename === "string" ? filename : "a file" };
    }
    case "dynamic-tool":
      return toolOf(textIn(part, "toolName"), part);
    default:
      return type.startsWith(TOOL) ? toolOf(type.slice(TOOL.length), part) : { type: "other" };
  }
}

function toolOf(name: string, part: Json): Part {
  const callId = textIn(part, "toolCallId");
  // Providers reject a conversation with a call without a name or an id.
  if (name === "" || callId === "") return { type: "other" };
  const { input = null } = fieldsOf(part);
  return { type: "tool", name, callId, input, result: resultOf(part) };
}

function resultOf(part: Json): ToolResult | undefined {
  const { preliminary, output = null } = fieldsOf(part);
  const state = textIn(part, "state");
  if (state === "output-available" && preliminary !== true) return { type: "output", output };
  return state === "output-error" ? { type: "error", error: textIn(part, "errorText") } : undefined;
}

/**
 * The ids of the tool calls of a conversation, as a model reads them. A model needs unique ids, so a
 * call whose id is in use gets a number as suffix.
 */
export class CallIds {
  /** The number of the next suffix, by id. */
  readonly #next = new Map<string, number>();

  /** Returns the id, with a number as suffix if another call has it. */
  unique(id: string): string {
    let unique = id;
    let number = this.#next.get(id);
    if (number !== undefined) {
      while (this.#next.has(unique)) {
        unique = `${id}-${number}`;
        number += 1;
      }
      this.#next.set(id, number);
    }
    this.#next.set(unique, 2);
    return unique;
  }
}

/**
 * Converts the parts of a message of the assistant to messages in the format of the reducer `messages`,
 * for a model.
 *
 * The message contains all output of one run. It is split into turns: the text with the requested
 * calls, then a result for each call. `view` returns what the model reads of the output or the error of
 * a tool call; a call for which it returns `undefined` is left out. So is a call without a result, such
 * as after a cancel, because providers reject it.
 *
 * `ids` has the ids of the calls of the conversation so far.
 *
 * ```ts
 * import { chat } from "wattle-plugin";
 *
 * const parts = [
 *   { type: "step-start" },
 *   {
 *     type: "tool-add",
 *     toolCallId: "c",
 *     state: "output-available",
 *     input: { a: 1, b: 2 },
 *     output: 3,
 *   },
 * ];
 * const messages = chat.ui.toStored(parts, new chat.ui.CallIds(), (_tool, result) =>
 *   result.type === "output" ? JSON.stringify(result.output) : result.error,
 * );
 * assert.deepEqual(messages[0]?.tool_calls, [{ id: "c", name: "add", arguments: { a: 1, b: 2 } }]);
 * assert.equal(messages[1]?.content, "3");
 * ```
 */
export function toStored(
  parts: readonly Json[],
  ids: CallIds,
  view: (tool: string, result: ToolResult) => string | undefined,
): Extra[] {
  const messages: Extra[] = [];
  let turn = new Turn();
  const end = () => {
    messages.push(...turn.messages());
    turn = new Turn();
  };
  for (const json of parts) {
    const part = partOf(json);
    if (part.type === "step_start") {
      end();
    } else if (part.type === "text" || part.type === "reasoning") {
      // A page may omit the start of a model call, and no text of a model call follows its tools.
      if (turn.calls.length > 0) end();
      turn[part.type] += part.text;
    } else if (part.type === "tool" && part.result !== undefined) {
      const content = view(part.name, part.result);
      if (content !== undefined) turn.call(ids.unique(part.callId), part, part.result, content);
    }
  }
  end();
  return messages;
}

/** The output of one model call, so far. */
class Turn {
  text = "";
  reasoning = "";
  readonly calls: Extra[] = [];
  readonly results: Extra[] = [];

  call(id: string, { name, input }: ToolPart, { type }: ToolResult, content: string): void {
    this.calls.push({ id, name, arguments: { ...fieldsOf(input) } });
    const status = type === "output" ? "success" : "error";
    this.results.push({ role: "tool", tool_call_id: id, name, status, content });
  }

  messages(): Extra[] {
    const { text, reasoning, calls, results } = this;
    if (trimmed(text) === "" && calls.length === 0) return [];
    const message = {
      role: "assistant",
      content: text,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(reasoning === "" ? {} : { reasoning }),
    };
    return [message, ...results];
  }
}
