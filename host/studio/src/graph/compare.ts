// The difference between two versions of a graph, as one shape whose items and lines are marked.
import {
  type GraphDocument,
  type Item,
  type Line,
  lineKey,
  type Shape,
  shapeOf,
} from "./definition.ts";

export type Mark = "added" | "removed" | "changed";

export interface Comparison {
  /** The items and lines of both versions. */
  readonly shape: Shape;
  /** The items of the version before, by id. */
  readonly old: ReadonlyMap<string, Item>;
  /** What is not the same in both versions, by the id of an item or the key of a line. */
  readonly marks: ReadonlyMap<string, Mark>;
  /** The marked items, in the order of the shape. */
  readonly items: readonly (readonly [item: Item, mark: Mark])[];
  /** The marked lines, in the order of the shape. */
  readonly lines: readonly (readonly [line: Line, mark: Mark])[];
}

/** Returns what `after` differs in from `before`. */
export function compare(before: GraphDocument, after: GraphDocument): Comparison {
  const [old, now] = [shapeOf(before.definition), shapeOf(after.definition)];
  const marks = new Map<string, Mark>();
  const items = union(old.items, now.items, ({ id }) => id, marks);
  const lines = union(old.lines, now.lines, lineKey, marks);
  const known = new Map(old.items.map((item) => [item.id, item]));
  for (const item of now.items) {
    const other = known.get(item.id);
    if (other !== undefined && aspects(before, other) !== aspects(after, item)) {
      marks.set(item.id, "changed");
    }
  }
  return {
    shape: { items, lines },
    old: known,
    marks,
    items: marked(items, ({ id }) => marks.get(id)),
    lines: marked(lines, (line) => marks.get(lineKey(line))),
  };
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

/** Returns what is compared of an item: its definition, and what its plugin says about it. */
function aspects(graph: GraphDocument, item: Item): string {
  const part = item.kind === "start" ? withoutItems(item.part) : item.part;
  return stable([part, graph.nodes[item.id] ?? null]);
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
