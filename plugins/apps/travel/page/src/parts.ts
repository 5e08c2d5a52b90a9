// What messages are made of.
import { getToolName, isToolUIPart, type UIMessage } from "ai";
import type { Block } from "./api.ts";
import { editableBlocks, HTML_TOOL } from "./tools.ts";

/** The text of a message, as a user wrote it. */
export function textOf(message: UIMessage): string {
  return message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The first message of a user. */
export function firstOf(messages: readonly UIMessage[]): UIMessage | undefined {
  return messages.find(({ role }) => role === "user");
}

function tools(messages: readonly UIMessage[]) {
  return messages.flatMap(({ parts }) => parts).filter(isToolUIPart);
}

/** How many tools have given an output. */
export function doneTools(messages: readonly UIMessage[]): number {
  return tools(messages).filter(({ state }) => state === "output-available").length;
}

/** The newest output that can be edited, with the call that it is of. */
export function editable(messages: readonly UIMessage[]): Editable | undefined {
  const found = tools(messages).findLast(
    (part) => editableBlocks(getToolName(part), part.output) !== undefined,
  );
  const blocks = found && editableBlocks(getToolName(found), found.output);
  return found && blocks && { call: found.toolCallId, blocks };
}

export interface Editable {
  call: string;
  blocks: Block[];
}

/** The call that made the newest page. */
export function pageCall(messages: readonly UIMessage[]): string | undefined {
  const isPage = (part: ReturnType<typeof tools>[number]) =>
    getToolName(part) === HTML_TOOL && part.state === "output-available";
  return tools(messages).findLast(isPage)?.toolCallId;
}
