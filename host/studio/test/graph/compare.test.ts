// @vitest-environment node
// The difference between two versions of a graph.
import { expect, test } from "vitest";
import { compare, nestedVersions } from "../../src/graph/compare.ts";
import type { GraphDocument, GraphVersions } from "../../src/graph/definition.ts";
import { comparedScene, type Scene } from "../../src/graph/scene.ts";
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

/** The version of a subgraph depends on all components of the app. */
const version = (of: GraphDocument, digest: string): GraphDocument => {
  const nodes = Object.entries(of.nodes).map(([name, it]) => [
    name,
    it.subgraph == null ? it : { ...it, subgraph_version: digest },
  ]);
  return { ...of, version: digest, nodes: Object.fromEntries(nodes) };
};

const around = (name: string, inner: string, more: object = {}) => {
  const nodes = { run: { graph: inner, ...more }, other: { graph: "still" } };
  const known = (subgraph: string) => ({ subgraph, doc: "" });
  return graphOf({ nodes }, { name, nodes: { run: known(inner), other: known("still") } });
};

const STILL = graphOf({ nodes: { a: {} } }, { name: "still" });

/** No missing graphs. */
const NONE: GraphVersions = new Map();

/** Returns the marks in a graph with a graph that has a third one, `[before, after]`, open. */
function marksOf(leaves: readonly [GraphDocument, GraphDocument]): Record<string, string> {
  const read = leaves.map((leaf, index) => {
    const all = [around("main", "middle"), around("middle", "leaf"), STILL, leaf];
    const named = all.map((it) => [it.name, version(it, `v${index}`)] as const);
    const graphs = new Map(named);
    return { root: graphs.get("main") as GraphDocument, graphs, missing: NONE };
  });
  const [before, after] = read as [(typeof read)[0], (typeof read)[0]];
  const nested = nestedVersions(before, after);
  const open = new Set(["run", "other", "run/run", "run/other"]);
  const marks: Record<string, string> = {};
  const visit = ({ path, comparison, inside }: Scene) => {
    for (const [id, mark] of comparison?.marks ?? []) marks[path + id] = mark;
    for (const { scene } of [...inside.values()].flat()) visit(scene);
  };
  visit(comparedScene([before.root, after.root], nested, open));
  return marks;
}

test("a subgraph is changed if its own graph is, at any depth", () => {
  const leaf = graphOf({ nodes: { a: {} } }, { name: "leaf", nodes: { a: node("one") } });
  expect(marksOf([leaf, leaf])).toEqual({});
  const changed = { ...leaf, nodes: { a: node("two") } };
  expect(marksOf([leaf, changed])).toEqual({
    run: "changed",
    "run/run": "changed",
    "run/run/a": "changed",
  });
});

test("other code alone has a mark of its own, which the subgraphs around share", () => {
  const built = (digest: string) => ({ ...node("one"), digest });
  const leafOf = (a: GraphDocument["nodes"][string], b = a) =>
    graphOf({ nodes: { a: {}, b: {} } }, { name: "leaf", nodes: { a, b } });
  const leaf = leafOf(built("one"));
  expect(marksOf([leaf, leafOf(built("two"), built("one"))])).toEqual({
    run: "code",
    "run/run": "code",
    "run/run/a": "code",
  });
  const changed = leafOf({ ...built("two"), doc: "two" }, built("two"));
  expect(marksOf([leaf, changed])).toEqual({
    run: "changed",
    "run/run": "changed",
    "run/run/a": "changed",
    "run/run/b": "code",
  });
  // The host does not know the code of one version.
  expect(marksOf([leaf, leafOf(node("one"), built("one"))])).toEqual({});
});

test("a subgraph of which the host lacks a version is not known to be changed", () => {
  const [root, graphs] = [around("main", "still"), new Map([["still", STILL]])];
  const missing = new Map([["still", "v0"]]);
  const lacking = { root, graphs: new Map<string, GraphDocument>(), missing };
  const whole = { root, graphs, missing: NONE };
  expect([...nestedVersions(lacking, whole).changed]).toEqual([]);
  expect([...nestedVersions(whole, lacking).changed]).toEqual([]);
  const { changed } = nestedVersions({ ...lacking, missing: NONE }, whole);
  expect([...changed]).toEqual([["still", "changed"]]);
});

test("a graph in a subgraph of which the host lacks a version is not known to be changed", () => {
  const [root, middle] = [around("main", "middle"), around("middle", "leaf")];
  const leaf = graphOf({ nodes: { a: {} } }, { name: "leaf" });
  const mapOf = (...graphs: GraphDocument[]) => new Map(graphs.map((graph) => [graph.name, graph]));
  const before = { root, graphs: mapOf(STILL), missing: new Map([["middle", "v0"]]) };
  const after = { root, graphs: mapOf(STILL, middle, leaf), missing: NONE };
  expect([...nestedVersions(before, after).changed]).toEqual([]);
});

test("the graph of a node of one version is that of this version, and has no marks", () => {
  const [before, after] = [around("main", "middle"), graphOf({ nodes: {} }, { name: "main" })];
  const old = graphOf({ nodes: { former: {} } }, { name: "middle" });
  const now = graphOf({ nodes: { fresh: {} } }, { name: "middle" });
  const [formerly, newly] = [new Map([["middle", old]]), new Map([["middle", now]])];
  const shown = (nodes: [GraphDocument, GraphDocument]) => {
    const changed = new Map([["middle", "changed" as const]]);
    const nested = { before: formerly, after: newly, changed };
    const { inside } = comparedScene(nodes, nested, new Set(["run"]));
    const [inner] = inside.get("run") ?? [];
    const names = inner?.scene.shape.items.map(({ name }) => name).filter((it) => it !== "");
    return [names, inner?.scene.comparison];
  };
  expect(shown([before, after])).toEqual([["former"], undefined]);
  expect(shown([after, before])).toEqual([["fresh"], undefined]);
  // Another graph runs as the node, so both are not compared.
  expect(shown([around("main", "still"), before])).toEqual([["fresh"], undefined]);
});
