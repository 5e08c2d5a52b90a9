// The export `node`. The build makes the component import it.

import type * as raw from "wattle:plugin/node@0.1.0";
import { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { toExtra } from "../json.ts";
import type { NodeEntry } from "../node.ts";
import type { Plugin } from "../plugin.ts";
import { extra, option, rawExtra, same, text, value } from "../wire/convert.ts";
import { guarded } from "./guarded.ts";

/** Key of the description that contains the schema of the configuration. */
const CONFIG_SCHEMA = "config-schema";

/** Key of the description that contains the channels that the node reads. */
const READS = "reads";

/** The export `node` of a component. */
export interface NodeExports {
  /** Describes all nodes. */
  describe(): raw.NodeInfo[];
  /** Runs the node that the context names. */
  run(context: raw.TaskContext, input: string): raw.Outcome;
}

/** Returns the export `node` of a plugin. */
export function exportNodes(plugin: Plugin): NodeExports {
  return {
    describe: () => plugin.nodes.map(describe),
    run: (context, input) => guarded(() => run(plugin, context, input)),
  };
}

function describe(node: NodeEntry): raw.NodeInfo {
  const { name, doc, inputSchema, outputSchema, configSchema, reads } = node;
  return {
    name,
    doc,
    inputSchema: text(inputSchema),
    outputSchema: text(outputSchema),
    extra: rawExtra(toExtra({ [CONFIG_SCHEMA]: configSchema, [READS]: reads })),
  };
}

function run(plugin: Plugin, context: raw.TaskContext, input: string): raw.Outcome {
  const node = plugin.nodes.find(({ name }) => name === context.node);
  if (node === undefined) throw Failure.notFound(`the plugin has no node \`${context.node}\``);
  const typed = new Context({
    ...context,
    tenant: option(context.tenant, same),
    context: value(context.context),
    extra: extra(context.extra),
  });
  const { updates, goto, sends, extra: own } = node.runText(typed, input);
  return {
    updates: updates.map((update) => ({ ...update, value: text(update.value) })),
    goto,
    sends: sends.map((send) => {
      return { node: send.node, input: text(send.input), extra: rawExtra(send.extra) };
    }),
    extra: rawExtra(own),
  };
}
