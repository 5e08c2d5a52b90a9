// The export `tool`. The build makes the component import it.

import type * as raw from "wattle:plugin/tool@0.1.0";
import { Failure } from "../failure.ts";
import type { Plugin } from "../plugin.ts";
import { HINTS, ToolContext, type ToolHints } from "../tool.ts";
import { extra, option, rawExtra, rawOption, same, text } from "../wire/convert.ts";
import { rawPart } from "../wire/message.ts";
import { guarded } from "./guarded.ts";

/** The export `tool` of a component. */
export interface ToolExports {
  /** Describes all tools. */
  list(): raw.ToolInfo[];
  /** Calls the tool that the context names. */
  call(context: raw.CallContext, args: string): raw.ToolOutput;
}

/** Returns the export `tool` of a plugin. */
export function exportTools(plugin: Plugin): ToolExports {
  return {
    list: () =>
      plugin.tools.map(({ name, description, argumentsSchema, acceptsInvalid, hints }) => ({
        name,
        description,
        argumentsSchema: text(argumentsSchema),
        acceptsInvalid,
        extra: rawHints(hints),
      })),
    call: (context, args) => guarded(() => call(plugin, context, args)),
  };
}

function rawHints({ readOnly, idempotent }: ToolHints): Array<[string, string]> {
  if (!readOnly && !idempotent) return [];
  return rawExtra({ [HINTS]: { read_only: readOnly, idempotent } });
}

function call(plugin: Plugin, context: raw.CallContext, args: string): raw.ToolOutput {
  const tool = plugin.tools.find(({ name }) => name === context.tool);
  if (tool === undefined) throw Failure.notFound(`the plugin has no tool \`${context.tool}\``);
  const typed = new ToolContext({
    tool: context.tool,
    callId: context.callId,
    threadId: option(context.threadId, same),
    taskId: option(context.taskId, same),
    tenant: option(context.tenant, same),
    violations: context.violations,
    extra: extra(context.extra),
  });
  const output = tool.callText(typed, args);
  return {
    content: output.content.map(rawPart),
    structured: rawOption(output.structured, text),
    isError: output.isError,
    updates: output.updates.map((update) => ({ ...update, value: text(update.value) })),
    extra: rawExtra(output.extra),
  };
}
