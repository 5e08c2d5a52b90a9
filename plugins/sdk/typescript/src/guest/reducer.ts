// The export `reducer`. The build makes the component import it.

import type * as raw from "wattle:plugin/reducer@0.1.0";
import type { Option } from "wattle:plugin/types@0.1.0";
import { Failure } from "../failure.ts";
import type { Plugin } from "../plugin.ts";
import { option, same } from "../wire/convert.ts";
import { guarded } from "./guarded.ts";

/** The export `reducer` of a component. */
export interface ReducerExports {
  /** Describes all reducers. */
  reducers(): raw.ReducerInfo[];
  /** Combines a value with the writes of a superstep. */
  reduce(reducer: string, current: Option<string>, updates: string[]): string;
}

/** Returns the export `reducer` of a plugin. */
export function exportReducers(plugin: Plugin): ReducerExports {
  return {
    reducers: () => plugin.reducers.map(({ name, doc }) => ({ name, doc, extra: [] })),
    reduce: (name, current, updates) =>
      guarded(() => {
        const reducer = plugin.reducers.find((it) => it.name === name);
        if (reducer === undefined) throw Failure.notFound(`the plugin has no reducer \`${name}\``);
        return reducer.reduceText(option(current, same), updates);
      }),
  };
}
