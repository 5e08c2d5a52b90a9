// @vitest-environment node
// The states that the picture of a run's graph shows.
import { expect, test } from "vitest";
import { layout, shownOf } from "../../src/graph/layout.ts";
import { sceneOf, structureOf } from "../../src/graph/scene.ts";
import { stateOf, stateText } from "../../src/graph/states.ts";
import type { Timeline } from "../../src/run/timeline.ts";
import {
  type Kind,
  log,
  runEnded,
  runStarted,
  taskFinished,
  taskStarted,
  timelineOf,
} from "../run/log.ts";
import { graphOf } from "./apps.ts";

const INNER = graphOf({ entry: "step", nodes: { step: {} } }, { name: "inner" });

const OUTER = graphOf({
  entry: "plan",
  nodes: { plan: { goto: "work" }, work: { graph: "inner" }, sum: {} },
  edges: [{ from: "work", to: "sum" }],
});

const started = (task: string, node: string, step: number, namespace?: string): Kind =>
  taskStarted(task, step, 1, { node, ...(namespace === undefined ? {} : { namespace }) });
const finished = (task: string, node: string, namespace?: string): Kind =>
  taskFinished(task, { node, ...(namespace === undefined ? {} : { namespace }) });

/** Returns what the boxes of a run say, by their keys. */
function shown(timeline: Timeline, outer = OUTER): Record<string, string> {
  const states = timeline.nodes();
  const graphs = new Map([["inner", INNER]]);
  const scene = sceneOf(outer, "", { graphs, open: new Set(["work"]), states });
  const entries = layout(scene).boxes.flatMap((box) => {
    const state = stateOf(states, box.scene.place, box.item);
    return state === undefined ? [] : [[box.key, stateText(state)] as const];
  });
  return Object.fromEntries(entries);
}

const BEGIN = [runStarted(), started("p", "plan", 0), finished("p", "plan")];

test("a node is in the state of its newest task", () => {
  expect(shown(timelineOf(log(...BEGIN)))).toEqual({ plan: "done" });
  const again = log(...BEGIN, started("p2", "plan", 1));
  expect(shown(timelineOf(again))).toEqual({ plan: "running" });
  expect(
    shown(timelineOf(log(runStarted(), started("p", "plan", 0), runEnded("cancelled")))),
  ).toEqual({ plan: "lost" });
});

test("parallel tasks are side by side, each with its own graph", () => {
  const events = log(
    ...BEGIN,
    started("w1", "work", 1),
    started("w2", "work", 1),
    started("s1", "step", 0, "work:w1"),
    started("s2", "step", 0, "work:w2"),
    finished("s1", "step", "work:w1"),
  );
  expect(shown(timelineOf(events))).toEqual({
    plan: "done",
    work: "2 of 2 tasks running",
    "work#0/step": "done",
    "work#1/step": "running",
  });
  const [first] = timelineOf(events).nodes().get("/work")?.newest ?? [];
  expect(first).toEqual({ task: "w1", status: "running", seq: 4 });
});

test("the graph of an earlier superstep makes room for that of the newest one", () => {
  const events = log(
    ...BEGIN,
    started("w1", "work", 1),
    started("w2", "work", 1),
    started("s1", "step", 0, "work:w1"),
    finished("w1", "work"),
    finished("w2", "work"),
    started("w3", "work", 2),
  );
  expect(shown(timelineOf(events))).toEqual({ plan: "done", work: "running" });
});

test("a subgraph that keeps its state is found by its node", () => {
  const keeping = graphOf({ entry: "work", nodes: { work: { graph: "inner", state: "own" } } });
  const events = log(runStarted(), started("w1", "work", 0), started("s1", "step", 0, "work"));
  expect(shown(timelineOf(events), keeping)).toEqual({ work: "running", "work#0/step": "running" });
});

test("a state does not change what is laid out, and a parallel task does", () => {
  const structure = (...more: Kind[]) => {
    const states = timelineOf(log(...BEGIN, ...more)).nodes();
    const graphs = new Map([["inner", INNER]]);
    return structureOf(sceneOf(OUTER, "", { graphs, open: new Set(["work"]), states }));
  };
  const one = structure(started("w1", "work", 1));
  expect(one).toBe(structure());
  expect(structure(started("w1", "work", 1), started("w2", "work", 1))).not.toBe(one);
});

test("many parallel tasks have some graphs at a time, from a chosen task on", () => {
  const tasks = Array.from({ length: 9 }, (_, index) => started(`w${index}`, "work", 1));
  const timeline = timelineOf(log(...BEGIN, ...tasks, started("s", "step", 0, "work:w5")));
  const states = timeline.nodes();
  const copies = (first: number) => {
    const sources = { graphs: new Map([["inner", INNER]]), open: new Set(["work"]), states };
    const chosen = new Map([["work", first]]);
    const { boxes } = layout(sceneOf(OUTER, "", { ...sources, first: chosen }));
    const steps = boxes.filter(({ item }) => item.id === "step");
    const work = boxes.find(({ item }) => item.id === "work");
    return [steps.map(({ key }) => key), work && shownOf(work, states.get("/work"))];
  };
  const keys = (...indexes: number[]) => indexes.map((index) => `work#${index}/step`);
  const first = { first: 0, last: 3, previous: undefined, next: 4 };
  expect(copies(0)).toEqual([keys(0, 1, 2, 3), first]);
  expect(copies(5)).toEqual([keys(4, 5, 6, 7), { first: 4, last: 7, previous: 0, next: 8 }]);
  const last = { first: 8, last: 8, previous: 4, next: undefined };
  expect(copies(8)).toEqual([keys(8), last]);
  // The tasks of an earlier superstep were more.
  expect(copies(100)).toEqual([keys(8), last]);
});
