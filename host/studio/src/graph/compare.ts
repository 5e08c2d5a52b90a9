// The difference between two versions of a graph, as one shape whose items and lines are marked.
import {
  type GraphDocument,
  type Graphs,
  type Item,
  type Line,
  lineKey,
  type Shape,
  shapeOf,
} from "./definition.ts";

export type Mark = "added" | "removed" | "changed";

/** Two versions of the graphs that run as nodes of a graph. */
export interface NestedVersions {
  readonly before: ReadonlyMap<string, GraphDocument>;
  readonly after: ReadonlyMap<string, GraphDocument>;
  /** Names of the graphs that differ themselves, or run one that differs, as far as is known. */
  readonly changed: ReadonlySet<string>;
}

export interface Comparison {
  readonly before: GraphDocument;
  /** The items and lines of both versions. */
  readonly shape: Shape;
  /** The items of the version before, by id. */
  readonly old: ReadonlyMap<string, Item>;
  /** What is not the same in both versions, by the id of an item or the key of a line. */
  readonly marks: ReadonlyMap<string, Mark>;
  /** Ids of the nodes that run the same graph in both versions, and this graph differs. */
  readonly inside: ReadonlySet<string>;
  /** The marked items, in the order of the shape. */
  readonly items: readonly (readonly [item: Item, mark: Mark])[];
  /** The marked lines, in the order of the shape. */
  readonly lines: readonly (readonly [line: Line, mark: Mark])[];
}

const NOTHING: ReadonlySet<string> = new Set();

/** Returns what `after` differs in from `before`. `changed`: see `NestedVersions`. */
export function compare(
  before: GraphDocument,
  after: GraphDocument,
  changed: ReadonlySet<string> = NOTHING,
): Comparison {
  const [old, now] = [shapeOf(before.definition), shapeOf(after.definition)];
  const marks = new Map<string, Mark>();
  const items = union(old.items, now.items, ({ id }) => id, marks);
  const lines = union(old.lines, now.lines, lineKey, marks);
  const known = new Map(old.items.map((item) => [item.id, item]));
  const inside = new Set<string>();
  for (const item of now.items) {
    const other = known.get(item.id);
    if (other === undefined) continue;
    const isSameGraph = item.graph !== undefined && item.graph === other.graph;
    if (isSameGraph && changed.has(item.graph)) inside.add(item.id);
    const isSame = stable(aspectsOf(before, other)) === stable(aspectsOf(after, item));
    if (!isSame || inside.has(item.id)) marks.set(item.id, "changed");
  }
  return {
    before,
    shape: { items, lines },
    old: known,
    marks,
    inside,
    items: marked(items, ({ id }) => marks.get(id)),
    lines: marked(lines, (line) => marks.get(lineKey(line))),
  };
}

/** Returns two versions of nested graphs. */
export function nestedVersions({ graphs: before, missing }: Graphs, { graphs: after }: Graphs) {
  const changed = new Set<string>();
  for (const [name, graph] of after) {
    const other = before.get(name);
    // A missing graph may have run any graph that is not known.
    const isNew = other === undefined && missing.size === 0;
    if (isNew || (other && compare(other, graph).marks.size > 0)) changed.add(name);
  }
  // Each pass finds the graphs around those that the pass before has found.
  for (let size = -1; size !== changed.size; ) {
    size = changed.size;
    for (const [name, { definition }] of after) {
      const { items } = shapeOf(definition);
      if (items.some(({ graph }) => graph !== undefined && changed.has(graph))) changed.add(name);
    }
  }
  return { before, after, changed } satisfies NestedVersions;
}

/** Returns the values of both lists, and marks those that one of them lacks. */
function union<T>(
  before: readonly T[],
  after: readonly T[],
  keyOf: (value: T) => string,
  marks: Map<string, Mark>,
): T[] {
  const [old, now] = [new Set(before.map(keyOf)), new Set(after.map(keyOf))];
  const removed = before.filter((value) => !now.has(keyOf(value)));
  for (const value of after) if (!old.has(keyOf(value))) marks.set(keyOf(value), "added");
  for (const value of removed) marks.set(keyOf(value), "removed");
  return [...after, ...removed];
}

function marked<T>(
  values: readonly T[],
  markOf: (value: T) => Mark | undefined,
): (readonly [T, Mark])[] {
  return values.flatMap((value) => {
    const mark = markOf(value);
    return mark === undefined ? [] : [[value, mark] as const];
  });
}

/** Parts of a definition that say nothing of an item of their own: those are items themselves. */
const OTHERS = new Set(["nodes", "edges", "branches", "entry"]);

/**
 * Returns what is compared of an item: its definition, and what its plugin says about it. The version
 * of a subgraph depends on all components of the app, so it says nothing of the subgraph.
 */
export function aspectsOf(graph: GraphDocument, { id, kind, part }: Item): unknown {
  if (kind === "start") return withoutItems(part);
  const { plugin, function: name, doc, input_schema, output_schema } = graph.nodes[id] ?? {};
  return { definition: part, plugin, function: name, doc, input_schema, output_schema };
}

function withoutItems(definition: unknown): unknown {
  const fields = Object.entries(Object(definition));
  return Object.fromEntries(fields.filter(([name]) => !OTHERS.has(name)));
}

/** Returns a document as text. The order of its keys has no effect. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
