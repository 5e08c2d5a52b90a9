// Tests without a host: a fake host implements every import with a script, and records the calls.

import { CONFIG, Context } from "../context.ts";
import { CONVERSATION } from "../conversation.ts";
import { parse, write } from "../json.ts";
import type { NodeEntry } from "../node.ts";
import type { Decision } from "../outcome.ts";
import { ToolContext, type ToolEntry, type ToolOutput } from "../tool.ts";
import { wholeConversation } from "./conversation.ts";

export { FakeHost, type ScriptedResponse, type ScriptedRows } from "./fake.ts";
export { checkOpenapi } from "./openapi.ts";
export type { Logged, Picture, Script, Statement } from "./state.ts";

/**
 * Runs a node with an input, as the host does: the input and the updates pass their types. For a node with
 * a conversation, the context gets one whose messages are all in the input, unless it has one.
 */
export function runNode(
  node: NodeEntry,
  input: unknown,
  context: Context<unknown> = new Context(),
): Decision {
  const text = write("the input", input);
  const declared = node.reads?.conversation;
  const isSet = context.extra[CONVERSATION] !== undefined;
  if (declared === undefined || isSet) return node.runText(context, text);
  const whole = wholeConversation(declared, context.extra[CONFIG], parse("the input", text));
  return node.runText(whole === undefined ? context : context.withConversation(whole), text);
}

/** Calls a tool with arguments, as the host does. */
export function callTool(
  tool: ToolEntry,
  args: unknown,
  context: ToolContext = new ToolContext(),
): ToolOutput {
  return tool.callText(context, write("the arguments", args));
}
