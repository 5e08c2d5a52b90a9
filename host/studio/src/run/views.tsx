// The views of a run, one entry each, in the order of their links. The first one needs no name in
// the address.
import { type ComponentType, lazy } from "react";
import { StateView } from "../state/state-view.tsx";
import { LogView } from "./log-view.tsx";
import type { RunViewProps } from "./store.ts";
import { TEXTS } from "./texts.ts";
import { TimelineRows } from "./timeline-rows.tsx";

/** A view of a run. A large one is loaded when it is opened, with `lazy` of React. */
export interface RunView {
  /** The value of `view` in the address. */
  readonly name: string;
  readonly title: string;
  readonly View: ComponentType<RunViewProps>;
}

/** Loaded when it is opened, because the layout of graphs is large. */
const Graph = lazy(() => import("../graph/run-graph.tsx"));

export const VIEWS: readonly [RunView, ...RunView[]] = [
  { name: "timeline", title: TEXTS.timelineView, View: TimelineRows },
  { name: "graph", title: TEXTS.graphView, View: Graph },
  { name: "state", title: TEXTS.stateView, View: State },
  { name: "log", title: TEXTS.logView, View: LogView },
];

function State({ place, store }: RunViewProps) {
  const { timeline } = store;
  return <StateView place={place} graphs={timeline.namespaces()} isOver={timeline.isOver} />;
}
