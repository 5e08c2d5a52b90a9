// The requests for a graph and its nested ones.
import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import type { GraphDocument } from "../../src/graph/definition.ts";
import { readGraphs } from "../../src/graph/read.ts";
import { problem } from "../host.ts";
import { graphOf } from "./apps.ts";

const VERSION = "ab".repeat(32);

const INNER_VERSION = "cd".repeat(32);

const PLACE = { app: "notes", graph: "main", version: VERSION };

const MAIN = graphOf(
  { entry: "work", nodes: { work: { graph: "inner" } } },
  {
    version: VERSION,
    nodes: { work: { subgraph: "inner", subgraph_version: INNER_VERSION, doc: "" } },
  },
);

const INNER = graphOf(
  { entry: "step", nodes: { step: {} } },
  { name: "inner", version: INNER_VERSION },
);

/** Times after the first reading: before and after a missing graph is requested again. */
const SOON_MS = 30_000;
const LATER_MS = 90_000;

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Serves the graphs that are in `graphs` when they are requested. Returns the requested names. */
function serve(graphs: Record<string, GraphDocument>): string[] {
  const requested: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const name = new URL(request.url).pathname.split("/").at(-1) ?? "";
    requested.push(name);
    const found = graphs[name];
    return found === undefined ? problem(404, "there is no such graph") : Response.json(found);
  });
  return requested;
}

test("a nested version that the host lacks is requested again after a time", async () => {
  const graphs: Record<string, GraphDocument> = { main: MAIN };
  const requested = serve(graphs);
  const client = new QueryClient();
  const start = Date.now();
  const now = vi.spyOn(Date, "now").mockReturnValue(start);
  const read = () => readGraphs(client, PLACE, new Set(["work"]));
  expect((await read()).missing).toEqual(new Map([["inner", INNER_VERSION]]));
  now.mockReturnValue(start + SOON_MS);
  expect((await read()).missing.size).toBe(1);
  expect((await readGraphs(client, PLACE, "all")).missing.size).toBe(1);
  expect(requested).toEqual(["main", "inner"]);
  graphs.inner = INNER;
  now.mockReturnValue(start + LATER_MS);
  expect((await read()).graphs.get("inner")).toEqual(INNER);
  await read();
  expect(requested).toEqual(["main", "inner", "inner"]);
});
