// @vitest-environment node
// The cases of branches that a run took, in the picture of its graph.
import { expect, test } from "vitest";
import { layout } from "../../src/graph/layout.ts";
import { sceneOf } from "../../src/graph/scene.ts";
import { takenIn, takenLines } from "../../src/graph/taken.ts";
import type { Timeline } from "../../src/run/timeline.ts";
import { checkpointed, log, runStarted, taskStarted, timelineOf } from "../run/log.ts";
import { graphOf } from "./apps.ts";

const branch = (name: string, from: string) => ({
  name,
  from,
  cases: [{ when: "state.n > 1", to: ["next", "END"] }, { to: "END" }],
});

const INNER = graphOf(
  { entry: "step", nodes: { step: {}, next: {} }, branches: [branch("inside", "step")] },
  { name: "inner" },
);

const OUTER = graphOf({
  entry: "work",
  nodes: { work: { graph: "inner" }, next: {} },
  branches: [branch("after", "work")],
});

const taken = (name: string, index: number, more: object = {}) =>
  checkpointed(1, { taken: [{ branch: name, case: index }], ...more });

const STARTED = [
  runStarted(),
  taskStarted("w1", 0, 1, { node: "work" }),
  taskStarted("w2", 0, 1, { node: "work" }),
];

/** Returns the picture of a run, and the ends of the lines that it took. */
function pictureOf(timeline: Timeline) {
  const [graphs, open] = [new Map([["inner", INNER]]), new Set(["work"])];
  const scene = sceneOf(OUTER, "", { graphs, open, states: timeline.nodes() });
  const { boxes, paths } = layout(scene);
  const keys = new Set(takenLines(scene, timeline.taken()));
  const found = paths.filter(({ key }) => keys.has(key));
  return { boxes, keys, ends: found.map(({ line }) => `${line.label}: ${line.to}`) };
}

test("the lines of a taken case are those to all of its targets", () => {
  expect(pictureOf(timelineOf(log(...STARTED))).ends).toEqual([]);
  const first = pictureOf(timelineOf(log(...STARTED, taken("after", 0))));
  expect(first.ends.sort()).toEqual(["state.n > 1: [end]", "state.n > 1: next"]);
  expect(first.keys.size).toBe(2);
  expect(pictureOf(timelineOf(log(...STARTED, taken("after", 1)))).ends).toEqual([
    "otherwise: [end]",
  ]);
});

test("a case of a subgraph is taken in the graph of its task only", () => {
  const timeline = timelineOf(log(...STARTED, taken("inside", 1, { namespace: "work:w2" })));
  const { keys, ends } = pictureOf(timeline);
  expect(ends).toEqual(["otherwise: [end]"]);
  expect([...keys].every((key) => key.startsWith("work#1/"))).toBe(true);
});

test("a branch has the number of times that each case was taken, in all graphs of its node", () => {
  const timeline = timelineOf(
    log(
      ...STARTED,
      taken("inside", 0, { namespace: "work:w1" }),
      taken("inside", 0, { namespace: "work:w2" }),
      taken("inside", 1, { namespace: "work:w2" }),
      taken("after", 0),
    ),
  );
  const boxes = pictureOf(timeline).boxes.filter(({ item }) => item.name === "inside");
  expect(boxes.length).toBe(2);
  expect([...takenIn(boxes, timeline.taken())]).toEqual([
    [0, { count: 2, seq: 5 }],
    [1, { count: 1, seq: 6 }],
  ]);
});

test("a case that the graph does not have, and an event of an older host, take no line", () => {
  expect(pictureOf(timelineOf(log(...STARTED, taken("after", 7)))).keys.size).toBe(0);
  expect(pictureOf(timelineOf(log(...STARTED, checkpointed(1)))).keys.size).toBe(0);
});
