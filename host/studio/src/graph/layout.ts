// Where the items and lines of a picture are. Each graph is laid out by itself, from the innermost
// one, and an opened node is as large as the graphs in it. So nothing overlaps.
import { Graph, layout as place } from "@dagrejs/dagre";
import type { NodeState } from "../run/node-states.ts";
import type { Mark } from "./compare.ts";
import { type Item, type ItemKind, type Line, lineKey, type Shape } from "./definition.ts";
import type { Inner, Scene } from "./scene.ts";
import { type ShownTasks, shownTasks } from "./states.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** An item with its upper left corner. */
export interface Box extends Point, Size {
  /** Differs for each box of the picture. */
  readonly key: string;
  readonly item: Item;
  readonly scene: Scene;
  /** The graphs in an opened node, from left to right; empty for any other item. */
  readonly inside: readonly Inner[];
}

/** A line with the points that it passes. */
export interface Path {
  readonly key: string;
  readonly line: Line;
  readonly mark: Mark | undefined;
  readonly points: readonly Point[];
  /** The place of the label, if there is one. */
  readonly label: (Point & Size) | undefined;
}

/** A picture. Boxes are after those around them. */
export interface Laid extends Size {
  readonly boxes: readonly Box[];
  readonly paths: readonly Path[];
}

/** Sizes of items, in pixels. */
const SIZES: Readonly<Record<ItemKind, Size>> = {
  start: { width: 72, height: 32 },
  end: { width: 72, height: 32 },
  node: { width: 184, height: 60 },
  subgraph: { width: 184, height: 60 },
  branch: { width: 160, height: 36 },
};

const LABEL: Size = { width: 132, height: 20 };

/** Distances, in pixels. */
const BETWEEN_ITEMS = 28;
const BETWEEN_RANKS = 36;
const BETWEEN_COPIES = 12;
const MARGIN = 12;

/** Height of the heading of an opened node. */
const HEADING = 60;

/** Items of a picture at most. The layout of more takes seconds. */
export const MOST_ITEMS = 300;

/** Returns the number of items of a scene with those in its opened nodes. */
export function sizeOf({ shape, inside }: Scene): number {
  const inner = [...inside.values()].flat().map(({ scene }) => sizeOf(scene));
  return inner.reduce((sum, count) => sum + count, shape.items.length);
}

/** Returns the layout of a scene. */
export function layout(scene: Scene): Laid {
  const inner = new Map<string, readonly Laid[]>();
  for (const [id, copies] of scene.inside) {
    inner.set(
      id,
      copies.map((copy) => layout(copy.scene)),
    );
  }
  const placed = placeOf(scene.shape, (item) => sizeWith(item, inner.get(item.id)));
  const boxes: Box[] = [];
  const paths: Path[] = placed.lines.map(({ line, points, label }) => ({
    key: scene.key + lineKey(line),
    line,
    mark: scene.comparison?.marks.get(lineKey(line)),
    points,
    label,
  }));
  for (const { item, ...area } of placed.items) {
    const inside = scene.inside.get(item.id) ?? [];
    boxes.push({ ...area, key: scene.key + item.id, item, scene, inside });
    let x = area.x + MARGIN;
    for (const laid of inner.get(item.id) ?? []) {
      const moved = movedBy(laid, { x, y: area.y + HEADING });
      boxes.push(...moved.boxes);
      paths.push(...moved.paths);
      x += laid.width + BETWEEN_COPIES;
    }
  }
  return { ...placed.size, boxes, paths };
}

/** Returns a layout with the graphs of another scene, whose structure is that of the first one. */
export function withScene(laid: Laid, scene: Scene): Laid {
  const scenes = new Map<string, Scene>();
  const visit = (around: Scene) => {
    scenes.set(around.key, around);
    for (const copies of around.inside.values()) for (const copy of copies) visit(copy.scene);
  };
  visit(scene);
  const boxes = laid.boxes.map((box) => {
    const around = scenes.get(box.scene.key) ?? box.scene;
    return { ...box, scene: around, inside: around.inside.get(box.item.id) ?? [] };
  });
  return { ...laid, boxes };
}

/** Returns which parallel tasks an opened node shows; `undefined` for any other item. */
export function shownOf({ inside }: Box, state: NodeState | undefined): ShownTasks | undefined {
  return shownTasks(
    inside.map(({ copy }) => copy),
    state,
  );
}

/** Returns the size of an item with the graphs in it. */
function sizeWith({ kind }: Item, inside: readonly Laid[] | undefined): Size {
  const least = SIZES[kind];
  if (inside === undefined) return least;
  const widths = inside.reduce((sum, { width }) => sum + width, 0);
  const gaps = BETWEEN_COPIES * Math.max(0, inside.length - 1);
  const height = Math.max(0, ...inside.map((laid) => laid.height));
  return {
    width: Math.max(least.width, widths + gaps + 2 * MARGIN),
    height: HEADING + height + MARGIN,
  };
}

function movedBy({ boxes, paths }: Laid, { x, y }: Point): Pick<Laid, "boxes" | "paths"> {
  const move = <P extends Point>(point: P): P => ({ ...point, x: point.x + x, y: point.y + y });
  return {
    boxes: boxes.map(move),
    paths: paths.map((path) => ({
      ...path,
      points: path.points.map(move),
      label: path.label && move(path.label),
    })),
  };
}

interface Placed {
  size: Size;
  items: readonly (Point & Size & { item: Item })[];
  lines: readonly Pick<Path, "line" | "points" | "label">[];
}

/** Lays out one graph. */
function placeOf({ items, lines }: Shape, sizeOfItem: (item: Item) => Size): Placed {
  const graph = new Graph({ directed: true, multigraph: true });
  graph.setGraph({
    rankdir: "TB",
    nodesep: BETWEEN_ITEMS,
    ranksep: BETWEEN_RANKS,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  for (const item of items) graph.setNode(item.id, { ...sizeOfItem(item) });
  for (const line of lines) {
    const size = line.label === "" ? { width: 0, height: 0 } : { ...LABEL, labelpos: "c" };
    graph.setEdge(line.from, line.to, size, lineKey(line));
  }
  place(graph);
  const { width = 0, height = 0 } = graph.graph() as Partial<Size>;
  const edges = lines.map((line) => graph.edge(line.from, line.to, lineKey(line)) as Edge);
  // The size that dagre returns is that of the items and labels. A line may pass beside them.
  const across = edges.flatMap(({ points = [] }) => points.map(({ x }) => x));
  const left = across.reduce((least, x) => Math.max(least, MARGIN - x), 0);
  const right = across.reduce((least, x) => Math.max(least, x + MARGIN - width), 0);
  const moved = <P extends Point>(point: P): P => ({ ...point, x: point.x + left });
  return {
    size: { width: width + left + right, height },
    items: items.map((item) => ({ item, ...cornerOf(moved(graph.node(item.id) as Point & Size)) })),
    lines: lines.map((line, index) => {
      const { points = [], x, y } = edges[index] ?? {};
      const isLabeled = line.label !== "" && x !== undefined && y !== undefined;
      const label = isLabeled ? cornerOf(moved({ x, y, ...LABEL })) : undefined;
      return { line, points: points.map(moved), label };
    }),
  };
}

interface Edge extends Partial<Point> {
  points?: readonly Point[];
}

/** Returns the area of a rectangle whose center is known, with its upper left corner. */
function cornerOf({ x, y, width, height }: Point & Size): Point & Size {
  return { x: x - width / 2, y: y - height / 2, width, height };
}
