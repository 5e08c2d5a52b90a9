// An app with a graph within a graph, for tests of edits.
import type { GraphDocument } from "../../src/graph/definition.ts";
import type { Checkpoint } from "../../src/state/read.ts";
import { problem } from "../host.ts";

export const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

export const VERSION = "ab".repeat(32);

const CHANNELS = {
  count: { schema: { type: "integer", minimum: 0 }, doc: HOSTILE },
  notes: { schema: { type: "array", items: { type: "string" } }, reducer: "append" },
  free: {},
  talk: { reducer: "messages", schema: { type: "array", items: { type: "object" } } },
  mixed: { reducer: { plugin: "p", reducer: "mix" } },
};

function graphOf(name: string, nodes: Record<string, string | undefined>): GraphDocument {
  const entries = Object.entries(nodes).map(([node, subgraph]) => {
    return [node, subgraph === undefined ? { doc: "" } : { doc: "", subgraph }] as const;
  });
  return {
    app: "notes",
    name,
    version: VERSION,
    definition: { channels: CHANNELS },
    mermaid: "",
    nodes: Object.fromEntries(entries),
  };
}

/** The graphs by name. */
export const GRAPHS: Record<string, GraphDocument> = {
  main: graphOf("main", { write: undefined, review: undefined, inner: "inner" }),
  inner: graphOf("inner", { step: undefined }),
};

/** Returns a checkpoint of the graph `main`, which `write` made. */
export function checkpointOf(id: number, values: Partial<Checkpoint> = {}): Checkpoint {
  const state = { count: 1, notes: ["a"], talk: [] };
  const rest = { step: id, source: "loop", run: "r1", at_ms: 0, next: ["review"], changed: [] };
  return { id, ...rest, state, writers: ["write"], version: VERSION, ...values };
}

/** Returns the response of a host that has one version of the graphs. */
export function graphResponse({ pathname, searchParams }: URL, name: string): Response {
  const version = searchParams.get("version");
  if (pathname.endsWith("/versions")) {
    return Response.json([{ version: VERSION, is_loaded: true, is_current: true }]);
  }
  const found = version === null || version === VERSION ? GRAPHS[name] : undefined;
  return found === undefined ? problem(404, "no such graph") : Response.json(found);
}
