// Calls of `tools`.

import type * as rawTool from "wattle:plugin/tool@0.1.0";
import * as raw from "wattle:plugin/tools@0.1.0";
import type { Result } from "../failure.ts";
import { ToolInfo, ToolOutput } from "../tool.ts";
import type { Call } from "../tools.ts";
import {
  call as callHost,
  extra,
  option,
  rawExtra,
  rawOption,
  result,
  same,
  text,
  value,
} from "./convert.ts";
import { part } from "./message.ts";

export function list(): ToolInfo[] {
  return callHost(() => raw.list()).map((info) => {
    const argumentsSchema = value(info.argumentsSchema);
    return new ToolInfo({ ...info, argumentsSchema, extra: extra(info.extra) });
  });
}

export function call(call: Call): ToolOutput {
  return output(callHost(() => raw.call(rawRequest(call))));
}

export function callAll(calls: readonly Call[]): Array<Result<ToolOutput>> {
  return raw.callAll(calls.map(rawRequest)).map((it) => result(it, output));
}

function rawRequest(call: Call): raw.Request {
  return {
    tool: call.tool,
    callId: call.callId,
    arguments: text(call.arguments),
    timeoutMs: rawOption(call.timeoutMs, same),
    extra: rawExtra(call.extra),
  };
}

function output(output: rawTool.ToolOutput): ToolOutput {
  return new ToolOutput({
    content: output.content.map(part),
    structured: option(output.structured, value),
    isError: output.isError,
    updates: output.updates.map((update) => ({ ...update, value: value(update.value) })),
    extra: extra(output.extra),
  });
}
