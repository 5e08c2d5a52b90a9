// Parts of messages.
import { getToolName, isToolUIPart, type UIMessage } from "ai";
import { editableBlocks, HTML_TOOL } from "./tools.ts";

/** Returns the first message of the user. */
export function firstOf(messages: readonly UIMessage[]): UIMessage | undefined {
  return messages.find(({ role }) => role === "user");
}

/** Returns the tool calls with an output. */
export function doneTools(messages: readonly UIMessage[]) {
  const tools = messages.flatMap(({ parts }) => parts).filter(isToolUIPart);
  return tools.filter(({ state }) => state === "output-available");
}

/**
 * Returns the newest output that can be edited, with the id of its tool call and its number among
 * the outputs, counted from 1.
 */
export function editable(messages: readonly UIMessage[]) {
  const outputs = doneTools(messages).map((part, index) => {
    const blocks = editableBlocks(getToolName(part), part.output);
    return blocks && { call: part.toolCallId, blocks, done: index + 1 };
  });
  return outputs.findLast((output) => output !== undefined);
}

/** Returns the tool call that made the newest page. */
export function pageCall(messages: readonly UIMessage[]): string | undefined {
  return doneTools(messages).findLast((part) => getToolName(part) === HTML_TOOL)?.toolCallId;
}
