// @vitest-environment node
// The difference between two versions of a graph.
import { expect, test } from "vitest";
import { compare } from "../../src/graph/compare.ts";
import { graphOf } from "./apps.ts";

const node = (doc: string) => ({ plugin: "notes", function: "a", doc });

const BEFORE = graphOf(
  {
    entry: ["a"],
    nodes: { a: { timeout: "1s", doc: "x" }, b: {}, gone: {} },
    edges: [
      { from: ["a"], to: ["b"] },
      { from: ["b"], to: ["gone"] },
    ],
    branches: [{ name: "which", from: ["gone"], cases: [{ when: "true", to: ["a"] }] }],
  },
  { nodes: { a: node("one"), b: node("same") } },
);

const AFTER = graphOf(
  {
    entry: ["a"],
    nodes: { a: { doc: "x", timeout: "1s" }, b: {}, fresh: { goto: ["a"] } },
    edges: [
      { from: ["a"], to: ["b"] },
      { from: ["b"], to: ["fresh"] },
    ],
    channels: { n: {} },
  },
  { nodes: { a: node("two"), b: node("same") } },
);

test("what was added, removed or changed is marked", () => {
  const { items, lines, shape, old } = compare(BEFORE, AFTER);
  expect(items.map(([{ id }, mark]) => `${id} ${mark}`)).toEqual([
    "[start] changed",
    "a changed",
    "fresh added",
    "gone removed",
    "?which removed",
  ]);
  expect(lines.map(([{ from, to }, mark]) => `${from} ${to} ${mark}`)).toEqual([
    "b fresh added",
    "fresh a added",
    "fresh [end] added",
    "b gone removed",
    "gone ?which removed",
    "?which a removed",
  ]);
  expect(shape.items.map(({ id }) => id)).toContain("gone");
  expect(old.get("gone")?.kind).toBe("node");
});

test("the order of fields is no difference", () => {
  const same = compare(AFTER, graphOf(JSON.parse(JSON.stringify(AFTER.definition)), AFTER));
  expect([...same.marks]).toEqual([]);
  const [a, b] = [{ nodes: { a: { x: 1, y: 2 } } }, { nodes: { a: { y: 2, x: 1 } } }];
  expect([...compare(graphOf(a), graphOf(b)).marks]).toEqual([]);
});
