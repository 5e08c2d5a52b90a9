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

/** `code`: nothing but the component of a node is another one. */
export type Mark = "added" | "removed" | "changed" | "code";

/** Two versions of the graphs that run as nodes of a graph. */
export interface NestedVersions {
  readonly before: ReadonlyMap<string, GraphDocument>;
  readonly after: ReadonlyMap<string, GraphDocument>;
  /** The graphs that differ themselves, or run one that differs, by name, as far as is known. */
  readonly changed: ReadonlyMap<string, Mark>;
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

const NOTHING: ReadonlyMap<string, Mark> = new Map();

/** Returns what `after` differs in from `before`. `changed`: see `NestedVersions`. */
export function compare(
  before: GraphDocument,
  after: GraphDocument,
  changed: ReadonlyMap<string, Mark> = NOTHING,
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
    const isSame = stable(aspectsOf(before, other)) === stable(aspectsOf(after, item));
    const own = otherCode(before, after, item) === undefined ? undefined : "code";
    const nested = item.graph === other.graph ? changed.get(item.graph ?? "") : undefined;
    if (nested !== undefined) inside.add(item.id);
    const mark = stronger(isSame ? own : "changed", nested);
    if (mark !== undefined) marks.set(item.id, mark);
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

/** Digests of the component of a node, which differ. */
export type OtherCode = readonly [before: string, after: string];

/** Returns the digests of the component of a node; `undefined` unless they are known to differ. */
export function otherCode(
  before: GraphDocument,
  after: GraphDocument,
  { id }: Pick<Item, "id">,
): OtherCode | undefined {
  const [old, now] = [before.nodes[id]?.digest, after.nodes[id]?.digest];
  return old == null || now == null || old === now ? undefined : [old, now];
}

/** Returns the mark of something that has both marks. */
function stronger(one: Mark | undefined, other: Mark | undefined): Mark | undefined {
  return one === undefined || other === "changed" ? other : one;
}

/** Returns two versions of nested graphs. */
export function nestedVersions({ graphs: before, missing }: Graphs, { graphs: after }: Graphs) {
  const changed = new Map<string, Mark>();
  for (const [name, graph] of after) {
    const other = before.get(name);
    const marks = other === undefined ? [] : [...compare(other, graph).marks.values()];
    // A missing graph may have run any graph that is not known.
    const isNew = other === undefined && missing.size === 0;
    if (isNew || marks.some((mark) => mark !== "code")) changed.set(name, "changed");
    else if (marks.length > 0) changed.set(name, "code");
  }
  // Each pass finds the graphs around those that the pass before has found.
  for (let isOver = false; !isOver; ) {
    isOver = true;
    for (const [name, { definition }] of after) {
      const own = changed.get(name);
      const nested = shapeOf(definition).items.map(({ graph }) => changed.get(graph ?? ""));
      const mark = nested.reduce(stronger, own);
      if (mark === undefined || mark === own) continue;
      changed.set(name, mark);
      isOver = false;
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
