// Implements `tools` with the script.

import { Failure, type Result } from "../../failure.ts";
import type { ToolInfo, ToolOutput } from "../../tool.ts";
import type { Call } from "../../tools.ts";
import { current, each } from "../state.ts";

export function list(): ToolInfo[] {
  return current().tools.map(({ info }) => info);
}

export function call(call: Call): ToolOutput {
  const { notes, tools } = current();
  notes.tools.push(call);
  const found = tools.find(({ info }) => info.name === call.tool || info.reference() === call.tool);
  if (found !== undefined) return found.script(call.arguments);
  throw Failure.notFound(`there is no tool \`${call.tool}\`; add it with \`FakeHost.tool\``);
}

export function callAll(calls: readonly Call[]): Array<Result<ToolOutput>> {
  return each(calls, call);
}
