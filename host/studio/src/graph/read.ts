// Reads graphs of an app, and their versions.
import {
  keepPreviousData,
  type QueryClient,
  type UseQueryResult,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { orMissing } from "../api/missing.ts";
import type { GraphDocument, Graphs } from "./definition.ts";
import { nestedGraphs, openedGraphs } from "./scene.ts";
import { NO_STATES } from "./states.ts";

/** A graph of an app. */
export interface GraphPlace {
  app: string;
  graph: string;
  /** The version; `undefined` for the one that new runs use. */
  version: string | undefined;
}

/** Interval at which a visible tab reads what changes when an app is loaded again, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Time for which a graph without a version is taken for the current one, in milliseconds. */
const FRESH_MS = 5_000;

/** Time for which a nested graph that the host lacks is not requested again, in milliseconds. */
const MISSING_MS = 60_000;

/** The nested graphs that are read: those in opened nodes, or `all`. */
type Nested = ReadonlySet<string> | "all";

/** Reads a graph and nested ones, as far as the host has them, in the versions of its own one. */
export function useGraphs(place: GraphPlace | undefined, nested: Nested): UseQueryResult<Graphs> {
  const client = useQueryClient();
  return useQuery({
    queryKey: ["graphs", place?.app, place?.graph, place?.version, keyOf(nested)],
    queryFn: () => readGraphs(client, place as GraphPlace, nested),
    enabled: place !== undefined,
    placeholderData: keepPreviousData,
    refetchInterval: INTERVAL_MS,
  });
}

function keyOf(nested: Nested): unknown {
  return nested === "all" ? nested : [...nested].sort();
}

/** Reads a graph and nested ones. Requests only what `client` lacks, or has for too long. */
export async function readGraphs(
  client: QueryClient,
  place: GraphPlace,
  nested: Nested,
): Promise<Graphs> {
  const root = await readGraph(client, place);
  const graphs = new Map<string, GraphDocument>();
  const missing = new Map<string, string | undefined>();
  for (;;) {
    const wanted =
      nested === "all"
        ? nestedGraphs({ root, graphs })
        : openedGraphs(root, { graphs, open: nested, states: NO_STATES });
    const unread = [...wanted].filter(([graph]) => !graphs.has(graph) && !missing.has(graph));
    if (unread.length === 0) return { root, graphs, missing };
    const places = unread.map(([graph, version]) => ({ app: place.app, graph, version }));
    const read = await Promise.all(places.map((next) => readNested(client, next)));
    for (const [index, [graph, version]] of unread.entries()) {
      const found = read[index] ?? null;
      if (found === null) missing.set(graph, version);
      else graphs.set(graph, found);
    }
  }
}

/**
 * Reads a nested graph; `null` if the host lacks it. The host may have it later, if an app with
 * this version is loaded again.
 */
function readNested(client: QueryClient, place: GraphPlace): Promise<GraphDocument | null> {
  const { app, graph, version } = place;
  return client.fetchQuery({
    queryKey: ["nested", app, graph, version],
    queryFn: async () => (await orMissing(readGraph(client, place))) ?? null,
    // A graph that the host has is cached by `readGraph`.
    staleTime: ({ state }) => (state.data === null ? MISSING_MS : 0),
  });
}

/** Reads a graph, unless it is known. A version does not change. */
function readGraph(client: QueryClient, place: GraphPlace): Promise<GraphDocument> {
  const { app, graph, version } = place;
  return client.fetchQuery({
    queryKey: ["graph", app, graph, version],
    queryFn: () => requestGraph(place),
    staleTime: version === undefined ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
}

/** Returns a graph of an app. */
export function requestGraph({ app, graph, version }: GraphPlace): Promise<GraphDocument> {
  const params = { path: { app, graph }, query: given({ version }) };
  return ok(api.GET("/api/v1/apps/{app}/graphs/{graph}", { params }));
}

/** Reads one version of a graph; nothing if there is none to read. */
export function useGraph(place: GraphPlace | undefined): UseQueryResult<GraphDocument> {
  return useQuery({
    queryKey: ["graph", place?.app, place?.graph, place?.version],
    queryFn: () => requestGraph(place as GraphPlace),
    enabled: place !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Reads the versions of a graph that the host can show. */
export function useVersions(
  app: string | undefined,
  graph: string | undefined,
): UseQueryResult<Schemas["GraphVersionDocument"][]> {
  return useQuery({
    queryKey: ["versions", app, graph],
    queryFn: () => readVersions(app ?? "", graph ?? ""),
    enabled: app !== undefined && graph !== undefined,
    refetchInterval: INTERVAL_MS,
  });
}

function readVersions(app: string, graph: string): Promise<Schemas["GraphVersionDocument"][]> {
  const params = { path: { app, graph } };
  return ok(api.GET("/api/v1/apps/{app}/graphs/{graph}/versions", { params }));
}
