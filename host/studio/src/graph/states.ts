// The states of a run's nodes, as the picture of its graph needs them.
import type { NodeState, TaskState } from "../run/timeline.ts";
import { nodeKey } from "../run/timeline.ts";
import type { Item } from "./definition.ts";
import { TEXTS } from "./texts.ts";

export type NodeStates = ReadonlyMap<string, NodeState>;

/** Tasks of one superstep that are shown side by side, each with its own subgraph. */
const MOST_COPIES = 4;

/** A graph of a run. `undefined`: the run has not entered it, or there is no run. */
export type Place = string | undefined;

/** Returns the state of a node of the graph at a place. */
export function stateOf(states: NodeStates, place: Place, item: Item): NodeState | undefined {
  return place === undefined ? undefined : states.get(nodeKey(place, item.id));
}

/** Returns the state of the tasks of a node's newest superstep. */
export function stateText({ status, newest }: NodeState): string {
  if (newest.length <= 1) return TEXTS.status(status);
  const running = newest.filter((task) => task.status === "running").length;
  if (running > 0) return TEXTS.running(running, newest.length);
  return TEXTS.tasks(newest.length, status);
}

/** A graph that an opened node shows. */
export interface Copy {
  readonly place: Place;
  /** The task that runs the graph, if the node has any. */
  readonly task: TaskState | undefined;
}

/**
 * Returns the graphs that an opened node shows: one for each task of its newest superstep, as these
 * run at once. A node that has not run has one.
 */
export function copiesOf(states: NodeStates, place: Place, item: Item): readonly Copy[] {
  const tasks = stateOf(states, place, item)?.newest ?? [];
  if (place === undefined || tasks.length === 0) return [{ place: undefined, task: undefined }];
  const last = tasks.at(-1);
  if (item.keepsState) return [{ place: joined(place, item.id), task: last }];
  return tasks
    .slice(0, MOST_COPIES)
    .map((task) => ({ place: joined(place, `${item.id}:${task.task}`), task }));
}

/** Returns the namespace of a subgraph, as the log has it. */
function joined(place: string, level: string): string {
  return place === "" ? level : `${place}|${level}`;
}
