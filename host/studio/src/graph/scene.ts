// What a picture shows: a graph, and in its opened nodes the graphs that run as them.
import { type Comparison, compare, type NestedVersions } from "./compare.ts";
import {
  type GraphDocument,
  type Graphs,
  type GraphVersions,
  type Item,
  type Shape,
  shapeOf,
} from "./definition.ts";
import {
  type Copy,
  copiesOf,
  type FirstTasks,
  NO_STATES,
  type NodeStates,
  type Place,
} from "./states.ts";

/** A graph of a picture. */
export interface Scene {
  /** Differs for each graph of the picture. */
  readonly key: string;
  /** Names of the nodes around the graph, each with a separator after it. */
  readonly path: string;
  readonly shape: Shape;
  /** The document of the graph. */
  readonly graph: GraphDocument;
  /** What differs from another version of the graph; `undefined` if it is compared with none. */
  readonly comparison: Comparison | undefined;
  readonly place: Place;
  /** The graphs in opened nodes, by the id of the node. */
  readonly inside: ReadonlyMap<string, readonly Inner[]>;
}

/** A graph in an opened node. */
export interface Inner {
  readonly copy: Copy;
  readonly scene: Scene;
}

/** What scenes are made of. */
export interface Sources {
  /** The graphs that were read, by name. */
  graphs: ReadonlyMap<string, GraphDocument>;
  /** Paths of the opened nodes. */
  open: ReadonlySet<string>;
  /** Empty without a run. */
  states: NodeStates;
  /** Which of many parallel tasks are shown; by default the first ones. */
  first?: FirstTasks;
}

/** Separates the names in a path. No name of a node contains it. */
const SEPARATOR = "/";

/** Nested graphs that are opened at most. A deeper one could not be read. */
const DEEPEST = 8;

/** Returns the path of an item of a scene. It does not depend on a run. */
export function pathOf({ path }: Pick<Scene, "path">, { id }: Item): string {
  return path + id;
}

/** Returns the paths of the nodes around an item. */
export function pathsAround(path: string): string[] {
  const names = path.split(SEPARATOR);
  return names.slice(1).map((_, end) => names.slice(0, end + 1).join(SEPARATOR));
}

/** Returns the version of a scene's graph that an item belongs to. */
export function graphOf({ comparison, graph }: Scene, { id }: Item): GraphDocument {
  return comparison?.marks.get(id) === "removed" ? comparison.before : graph;
}

/** Returns the scene of a graph. `place` is the namespace of its run. */
export function sceneOf(graph: GraphDocument, place: Place, sources: Sources): Scene {
  const base = { graph, before: undefined, nested: undefined, place, path: "", key: "" };
  return build(base, sources, 0);
}

/** Returns the scene of two versions of a graph. */
export function comparedScene(
  [before, after]: readonly [before: GraphDocument, after: GraphDocument],
  nested: NestedVersions,
  open: ReadonlySet<string>,
): Scene {
  const base = { graph: after, before, nested, place: undefined, path: "", key: "" };
  return build(base, { graphs: nested.after, open, states: NO_STATES }, 0);
}

interface Base extends Pick<Scene, "graph" | "place" | "path" | "key"> {
  /** The version that the graph is compared with. */
  before: GraphDocument | undefined;
  /** The nested graphs of a comparison. */
  nested: NestedVersions | undefined;
}

function build({ before, nested, ...base }: Base, sources: Sources, depth: number): Scene {
  const comparison = before && compare(before, base.graph, nested?.changed);
  const shape = comparison?.shape ?? shapeOf(base.graph.definition);
  const inside = new Map<string, readonly Inner[]>();
  for (const item of shape.items) {
    const path = pathOf(base, item);
    if (depth >= DEEPEST || !sources.open.has(path)) continue;
    const { graphs, ...versions } = versionsIn(item, comparison, nested, sources.graphs);
    const graph = graphs.get(item.graph ?? "");
    if (graph === undefined) continue;
    const around = base.key + item.id;
    const first = sources.first?.get(around) ?? 0;
    const inner = copiesOf(sources.states, base.place, item, first).map((copy) => {
      const key = `${around}#${copy.index ?? 0}${SEPARATOR}`;
      const place = { place: copy.place, path: path + SEPARATOR, key };
      return {
        copy,
        scene: build({ ...versions, graph, ...place }, { ...sources, graphs }, depth + 1),
      };
    });
    inside.set(item.id, inner);
  }
  return { ...base, shape, comparison, inside };
}

/** What the graph in an opened node is compared with, and the graphs of its version. */
interface Versions extends Pick<Base, "before" | "nested"> {
  graphs: ReadonlyMap<string, GraphDocument>;
}

/** Returns the versions of the graph in an item. That of a node of one version is not compared. */
function versionsIn(
  { id, graph = "" }: Item,
  comparison: Comparison | undefined,
  nested: NestedVersions | undefined,
  graphs: ReadonlyMap<string, GraphDocument>,
): Versions {
  const isRemoved = comparison?.marks.get(id) === "removed";
  const isSame = !isRemoved && comparison?.old.get(id)?.graph === graph;
  if (nested !== undefined && isSame) return { graphs, before: nested.before.get(graph), nested };
  const own = nested !== undefined && isRemoved ? nested.before : graphs;
  return { graphs: own, before: undefined, nested: undefined };
}

/** Returns a text that is the same for scenes that are laid out alike. */
export function structureOf({ key, graph, comparison, inside }: Scene): string {
  const parts = [...inside].map(([id, inner]) => [
    id,
    inner.map(({ scene }) => structureOf(scene)),
  ]);
  return JSON.stringify([key, graph.name, graph.version, comparison?.before.version, parts]);
}

/** Returns the graphs that run as opened nodes, as far as the graphs around are known. */
export function openedGraphs(root: GraphDocument, sources: Sources): GraphVersions {
  const opened = new Map<string, string | undefined>();
  const visit = (graph: GraphDocument, path: string, depth: number) => {
    for (const item of shapeOf(graph.definition).items) {
      const at = path + item.id;
      if (item.graph === undefined || depth >= DEEPEST || !sources.open.has(at)) continue;
      opened.set(item.graph, graph.nodes[item.id]?.subgraph_version ?? undefined);
      const inner = sources.graphs.get(item.graph);
      if (inner !== undefined) visit(inner, at + SEPARATOR, depth + 1);
    }
  };
  visit(root, "", 0);
  return opened;
}

/** Returns the graphs that run as nodes at any depth, as far as the graphs around are known. */
export function nestedGraphs({ root, graphs }: Omit<Graphs, "missing">): GraphVersions {
  const nested = new Map<string, string | undefined>();
  // The loop also visits what it adds.
  const around = new Set([root]);
  for (const graph of around) {
    for (const item of shapeOf(graph.definition).items) {
      if (item.graph === undefined) continue;
      nested.set(item.graph, graph.nodes[item.id]?.subgraph_version ?? undefined);
      const inner = graphs.get(item.graph);
      if (inner !== undefined) around.add(inner);
    }
  }
  return nested;
}
