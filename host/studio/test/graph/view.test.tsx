// The picture of a graph while its run goes on.
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { sceneOf } from "../../src/graph/scene.ts";
import { GraphView } from "../../src/graph/view.tsx";
import { type Kind, log, runStarted, taskFinished, taskStarted, timelineOf } from "../run/log.ts";
import { graphOf } from "./apps.ts";

const INNER = graphOf({ entry: "step", nodes: { step: {} } }, { name: "inner" });

const OUTER = graphOf({ entry: "work", nodes: { work: { graph: "inner" } } });

const GRAPHS = new Map([["inner", INNER]]);

afterEach(cleanup);

/** Returns the view of a run with these events, whose nested graph is open. */
function viewOf(...events: Kind[]) {
  const states = timelineOf(log(runStarted(), ...events)).nodes();
  const opening = { open: new Set(["work"]), setOpen: () => {} };
  const scene = sceneOf(OUTER, "", { graphs: GRAPHS, open: opening.open, states });
  const selecting = { selected: undefined, onSelect: () => {} };
  return <GraphView scene={scene} states={states} opening={opening} {...selecting} />;
}

const step = () => document.querySelector<HTMLElement>('[data-node="step"]')?.dataset.status;

test("an opened node shows the graph of its newest task", () => {
  const first = [
    taskStarted("w1", 0, 1, { node: "work" }),
    taskStarted("s1", 0, 1, { node: "step", namespace: "work:w1" }),
  ];
  const { rerender } = render(viewOf());
  expect(step()).toBeUndefined();
  rerender(viewOf(...first));
  expect(step()).toBe("running");
  const ended = [...first, taskFinished("w1", { node: "work" })];
  rerender(viewOf(...ended, taskStarted("w2", 1, 1, { node: "work" })));
  expect(step()).toBeUndefined();
});
