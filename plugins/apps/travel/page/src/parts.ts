// Parts of messages.
import { getToolName, isToolUIPart, type UIMessage } from "ai";
import type { Block } from "./api.ts";
import { editableBlocks, HTML_TOOL } from "./tools.ts";

/** Returns the first message of the user. */
export function firstOf(messages: readonly UIMessage[]): UIMessage | undefined {
  return messages.find(({ role }) => role === "user");
}

function tools(messages: readonly UIMessage[]) {
  return messages.flatMap(({ parts }) => parts).filter(isToolUIPart);
}

/** Returns the number of tool outputs. */
export function doneTools(messages: readonly UIMessage[]): number {
  return tools(messages).filter(({ state }) => state === "output-available").length;
}

/** Returns the newest output that can be edited. */
export function editable(messages: readonly UIMessage[]): Editable | undefined {
  let found: Editable | undefined;
  let done = 0;
  for (const part of tools(messages)) {
    if (part.state !== "output-available") continue;
    done += 1;
    const blocks = editableBlocks(getToolName(part), part.output);
    if (blocks !== undefined) found = { call: part.toolCallId, blocks, done };
  }
  return found;
}

export interface Editable {
  /** Id of its tool call. */
  call: string;
  blocks: Block[];
  /** Its number among the outputs, counted from 1. */
  done: number;
}

/** Returns the tool call that made the newest page. */
export function pageCall(messages: readonly UIMessage[]): string | undefined {
  const isPage = (part: ReturnType<typeof tools>[number]) =>
    getToolName(part) === HTML_TOOL && part.state === "output-available";
  return tools(messages).findLast(isPage)?.toolCallId;
}
