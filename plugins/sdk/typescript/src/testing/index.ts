// Tests without a host: a fake host implements every import with a script, and records the calls.

import { write } from "../json.ts";
import { Context, type Decision, type NodeEntry } from "../node.ts";
import { ToolContext, type ToolEntry, type ToolOutput } from "../tool.ts";

export { FakeHost, type ScriptedResponse, type ScriptedRows } from "./fake.ts";
export { checkOpenapi } from "./openapi.ts";
export type { Logged, Picture, Script, Statement } from "./state.ts";

/** Runs a node with an input, as the host does: the input and the updates pass their types. */
export function runNode(
  node: NodeEntry,
  input: unknown,
  context: Context<unknown> = new Context(),
): Decision {
  return node.runText(context, write("the input", input));
}

/** Calls a tool with arguments, as the host does. */
export function callTool(
  tool: ToolEntry,
  args: unknown,
  context: ToolContext = new ToolContext(),
): ToolOutput {
  return tool.callText(context, write("the arguments", args));
}
