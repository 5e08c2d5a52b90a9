// A plugin: what a component exports.

import { Failure } from "./failure.ts";
import type { NodeEntry } from "./node.ts";
import type { ReducerEntry } from "./reducer.ts";
import type { ToolEntry } from "./tool.ts";
import type { HandlerEntry } from "./web/handler.ts";

/** Requests for the permissions that a plugin needs. {@link manifest} creates it. */
export interface Manifest {
  /** Kind of the entry. */
  readonly kind: "manifest";
  /** The requests in TOML. */
  readonly text: string;
}

/** A part of a plugin. */
export type Entry = NodeEntry | ToolEntry | ReducerEntry | HandlerEntry | Manifest;

/** The nodes, tools, reducers and web handlers of a component. {@link plugin} creates it. */
export class Plugin {
  /** Nodes by name. */
  readonly nodes: readonly NodeEntry[];
  /** Tools by name. */
  readonly tools: readonly ToolEntry[];
  /** Reducers by name. */
  readonly reducers: readonly ReducerEntry[];
  /** Web handlers by method and path. */
  readonly handlers: readonly HandlerEntry[];
  /** The manifest in TOML, if there is one. */
  readonly manifest: string | undefined;

  /** Creates a plugin. */
  constructor(entries: readonly Entry[]) {
    this.nodes = entries.filter((entry) => entry.kind === "node");
    this.tools = entries.filter((entry) => entry.kind === "tool");
    this.reducers = entries.filter((entry) => entry.kind === "reducer");
    this.handlers = entries.filter((entry) => entry.kind === "handler");
    const manifests = entries.filter((entry) => entry.kind === "manifest");
    if (manifests.length > 1) throw Failure.invalid("a plugin has only one manifest");
    this.manifest = manifests[0]?.text;
    checkUnique("node", this.nodes);
    checkUnique("tool", this.tools);
    checkUnique("reducer", this.reducers);
    const routes = this.handlers.map(({ method, path }) => ({ name: `${method} ${path}` }));
    checkUnique("endpoint", routes);
  }
}

function checkUnique(kind: string, entries: ReadonlyArray<{ name: string }>): void {
  const names = new Set<string>();
  for (const { name } of entries) {
    if (names.has(name)) throw Failure.invalid(`the plugin has two ${kind}s \`${name}\``);
    names.add(name);
  }
}

/**
 * Makes the component of nodes, tools, reducers and web handlers. It is the default export of the
 * plugin's entry file. The component exports only the interfaces of what is listed.
 *
 * ```ts
 * import { END, handler, node, Outcome, plugin, reducer, Response } from "wattle-plugin";
 * import * as z from "zod";
 *
 * const stop = node("stop", { doc: "Ends the run." }, () => Outcome.nothing().goto(END));
 *
 * const max = reducer("max", { doc: "Keeps the larger number.", value: z.int() }, (current, updates) =>
 *   Math.max(...updates, ...(current === undefined ? [] : [current])),
 * );
 *
 * const health = handler("GET", "/health", { doc: "Reports that the plugin is available." }, () =>
 *   Response.text(200, "ok"),
 * );
 *
 * export default plugin(stop, max, health);
 * ```
 */
export function plugin(...entries: Entry[]): Plugin {
  return new Plugin(entries);
}

/**
 * Embeds the manifest in the component. The manifest requests the permissions that the plugin needs.
 * The host intersects them with the operator's grants. The manifest of a component of an app has no
 * effect: `[needs]` in `app.toml` requests the permissions of the components.
 *
 * ```ts
 * import { manifest, plugin } from "wattle-plugin";
 *
 * export default plugin(
 *   manifest(`
 *     llm = ["chat"]
 *     http = [{ host = "api.example.com" }]
 *   `),
 * );
 * ```
 */
export function manifest(text: string): Manifest {
  return { kind: "manifest", text };
}
