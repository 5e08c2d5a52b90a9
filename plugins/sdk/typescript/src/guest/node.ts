// The export `node`. The build makes the component import it.

import type * as raw from "wattle:plugin/node@0.1.0";
import { Failure } from "../failure.ts";
import { Context } from "../node.ts";
import type { Plugin } from "../plugin.ts";
import { extra, option, rawExtra, same, text, value } from "../wire/convert.ts";
import { guarded } from "./guarded.ts";

/** Key of the description that contains the schema of the configuration. */
const CONFIG_SCHEMA = "config-schema";

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
    describe: () =>
      plugin.nodes.map(({ name, doc, inputSchema, outputSchema, configSchema }) => ({
        name,
        doc,
        inputSchema: text(inputSchema),
        outputSchema: text(outputSchema),
        extra: rawExtra(configSchema === undefined ? {} : { [CONFIG_SCHEMA]: configSchema }),
      })),
    run: (context, input) => guarded(() => run(plugin, context, input)),
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
