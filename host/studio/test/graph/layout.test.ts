// @vitest-environment node
// Where the items of graphs are.
import { expect, test } from "vitest";
import { END_ITEM, type GraphDocument, START, shapeOf } from "../../src/graph/definition.ts";
import { type Box, type Laid, layout, sizeOf } from "../../src/graph/layout.ts";
import { neighbor } from "../../src/graph/move.ts";
import { pathsAround, type Scene, sceneOf } from "../../src/graph/scene.ts";
import type { NodeStates } from "../../src/graph/states.ts";
import { graphOf, graphsOfApps } from "./apps.ts";

const NO_STATES: NodeStates = new Map();

/** Returns the scene of a graph with opened nodes. */
function scene(graph: GraphDocument, nested: readonly GraphDocument[] = [], ...open: string[]) {
  const graphs = new Map(nested.map((inner) => [inner.name, inner]));
  return sceneOf(graph, undefined, { graphs, open: new Set(open), states: NO_STATES });
}

function contains(outer: Box, inner: Box): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** Returns true if a box is around another one, as the scene says. */
function isAround(outer: Box, inner: Box): boolean {
  const scenes = (box: Box): Scene[] =>
    box.inside.flatMap(({ scene: each }) => [
      each,
      ...[...each.inside.values()].flat().map((it) => it.scene),
    ]);
  return scenes(outer).some(({ key }) => key === inner.scene.key);
}

/** Expects that boxes overlap only those around them, which contain them. */
function expectNoOverlap({ boxes, paths, width, height }: Laid): void {
  const points = paths.flatMap((path) => path.points);
  expect(points.filter(({ x, y }) => x < 0 || y < 0 || x > width || y > height)).toEqual([]);
  for (const [index, a] of boxes.entries()) {
    expect(a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height).toBe(true);
    for (const b of boxes.slice(index + 1)) {
      if (isAround(a, b)) expect(contains(a, b), `${a.key} contains ${b.key}`).toBe(true);
      else expect(overlap(a, b), `${a.key} and ${b.key}`).toBe(false);
    }
  }
}

const apps = graphsOfApps();

test("there are graphs of six apps", () => {
  expect(new Set(apps.map(({ app }) => app)).size).toBe(6);
});

test.each(apps.map((graph) => [graph.name, graph] as const))(
  "nothing overlaps in %s",
  (_, graph) => {
    const shape = shapeOf(graph.definition);
    const laid = layout(scene(graph));
    expectNoOverlap(laid);
    expect(laid.boxes).toHaveLength(shape.items.length);
    expect(laid.paths).toHaveLength(shape.lines.length);
    expect(laid.paths.every(({ points }) => points.length >= 2)).toBe(true);
    const labeled = laid.paths.filter(({ line }) => line.label !== "");
    expect(labeled.every(({ label }) => label !== undefined)).toBe(true);
    // Each item is on the way from the start to the end.
    const ends = new Set(shape.lines.flatMap(({ from, to }) => [from, to]));
    expect(shape.items.filter(({ id }) => !ends.has(id))).toEqual([]);
  },
);

test("an opened node contains its graph, at any depth", () => {
  const inner = graphOf(
    { entry: "c", nodes: { c: {}, d: {} }, edges: [{ from: "c", to: "d" }] },
    { name: "inner" },
  );
  const middle = graphOf({ entry: "b", nodes: { b: { graph: "inner" } } }, { name: "middle" });
  const outer = graphOf({
    entry: ["a", "z"],
    nodes: { a: { graph: "middle" }, z: {} },
    edges: [{ from: ["a", "z"], to: "END" }],
  });
  const closed = scene(outer, [middle, inner]);
  expect(layout(closed).boxes.map(({ item }) => item.id)).toEqual([START, "a", "z", END_ITEM]);
  const open = scene(outer, [middle, inner], "a", "a/b");
  const laid = layout(open);
  expectNoOverlap(laid);
  expect(sizeOf(open)).toBe(laid.boxes.length);
  expect(laid.boxes.map(({ key }) => key)).toContain("a#0/b#0/d");
  expect(pathsAround("a/b/d")).toEqual(["a", "a/b"]);
  // A path that leads nowhere opens nothing.
  expect(sizeOf(scene(outer, [middle, inner], "q", "a/b"))).toBe(4);
});

test("a graph that contains itself is opened to a limit", () => {
  const paths = Array.from({ length: 20 }, (_, depth) =>
    Array(depth + 1)
      .fill("a")
      .join("/"),
  );
  const loop = graphOf({ entry: "a", nodes: { a: { graph: "main" } } });
  expect(sizeOf(scene(loop, [loop], ...paths))).toBe(27);
});

test("a definition that is not valid leaves out what it cannot draw", () => {
  for (const definition of [null, 1, [], { nodes: [] }, { nodes: { a: null }, edges: "x" }]) {
    expectNoOverlap(layout(scene(graphOf(definition))));
  }
  const { lines } = shapeOf({
    entry: "nobody",
    nodes: { a: { goto: ["a", "b"], on_error: "b" }, b: {} },
    branches: [
      { name: "which", from: "b", cases: [{ when: "state.n > 1", to: "a" }, { to: "END" }] },
    ],
    defaults: { on_error: "b" },
  });
  expect(lines.map(({ from, to, kind, label }) => `${from} ${to} ${kind} ${label}`)).toEqual([
    "b ?which edge ",
    "?which a case state.n > 1",
    "?which [end] case otherwise",
    "a a goto ",
    "a b goto ",
    "a b error on error",
    "a [end] goto ",
  ]);
});

test("arrow keys lead to the nearest item in their direction", () => {
  const graph = graphOf({ entry: ["a", "b"], nodes: { a: {}, b: {} } });
  const { boxes } = layout(scene(graph));
  const at = (id: string) => boxes.find(({ item }) => item.id === id) as Box;
  const [left, right] = at("a").x < at("b").x ? ["a", "b"] : ["b", "a"];
  const to = (id: string, key: string) => neighbor(boxes, at(id), key)?.item.id;
  expect(to(left, "ArrowRight")).toBe(right);
  expect(to(right, "ArrowLeft")).toBe(left);
  expect(to(left, "ArrowUp")).toBe(START);
  expect(to(right, "ArrowDown")).toBe(END_ITEM);
  expect(to(START, "ArrowUp")).toBeUndefined();
  expect(to(START, "x")).toBeUndefined();
});
