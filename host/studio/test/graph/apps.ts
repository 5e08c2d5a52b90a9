// The graphs of the apps in this repository, as documents of the API.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "smol-toml";
import type { GraphDocument } from "../../src/graph/definition.ts";

/** Returns the document of a graph, with other values where a test needs them. */
export function graphOf(definition: unknown, values: Partial<GraphDocument> = {}): GraphDocument {
  const base = { app: "notes", name: "main", version: "ab".repeat(32), mermaid: "", nodes: {} };
  return { ...base, definition, ...values };
}

/** Returns all graphs of all apps. */
export function graphsOfApps(): GraphDocument[] {
  const apps = join(dirname(fileURLToPath(import.meta.url)), "../../../../plugins/apps");
  return readdirSync(apps).flatMap((app) => {
    const file = join(apps, app, "graph.toml");
    if (!existsSync(file)) return [];
    const { graphs = {} } = parse(readFileSync(file, "utf8"));
    return Object.entries(graphs).map(([name, definition]) => graphOf(definition, { app, name }));
  });
}
