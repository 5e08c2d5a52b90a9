// The states of a run's nodes, as the picture of its graph needs them.
import { type NodeState, nodeKey, type TaskState } from "../run/node-states.ts";
import type { Item } from "./definition.ts";
import { TEXTS } from "./texts.ts";

export type NodeStates = ReadonlyMap<string, NodeState>;

/** The states without a run. */
export const NO_STATES: NodeStates = new Map();

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
  /** The index of the task in its superstep; `undefined` if the graph is not that of one task. */
  readonly index: number | undefined;
}

/** The index of the first task whose graph is shown, by the key of the node's box. */
export type FirstTasks = ReadonlyMap<string, number>;

/**
 * Returns the graphs that an opened node shows: one for each task of its newest superstep, as these
 * run at once. Of many tasks, those from `first` on have one. A node that has not run has one.
 */
export function copiesOf(
  states: NodeStates,
  place: Place,
  item: Item,
  first: number,
): readonly Copy[] {
  const tasks = stateOf(states, place, item)?.newest ?? [];
  if (place === undefined || tasks.length === 0) {
    return [{ place: undefined, task: undefined, index: undefined }];
  }
  const last = tasks.at(-1);
  if (item.keepsState) return [{ place: joined(place, item.id), task: last, index: undefined }];
  // A later superstep may have fewer tasks.
  const from = firstWith(Math.min(first, tasks.length - 1));
  return tasks.slice(from, from + MOST_COPIES).map((task, offset) => ({
    place: joined(place, `${item.id}:${task.task}`),
    task,
    index: from + offset,
  }));
}

/** Returns the first task of those that are shown with a task. */
export function firstWith(index: number): number {
  return index - (index % MOST_COPIES);
}

/** The tasks whose graphs an opened node shows, by their indexes. */
export interface ShownTasks {
  readonly first: number;
  readonly last: number;
  /** Tasks to show before and after these; `undefined` if there are none. */
  readonly previous: number | undefined;
  readonly next: number | undefined;
}

/** Returns which tasks the graphs in a node belong to; `undefined` if these are all. */
export function shownTasks(
  copies: readonly Copy[],
  state: NodeState | undefined,
): ShownTasks | undefined {
  const [first, last] = [copies[0]?.index, copies.at(-1)?.index];
  const count = state?.newest.length ?? 0;
  if (first === undefined || last === undefined || count <= copies.length) return undefined;
  return {
    first,
    last,
    previous: first === 0 ? undefined : first - MOST_COPIES,
    next: last + 1 < count ? last + 1 : undefined,
  };
}

/** Returns the namespace of a subgraph, as the log has it. */
function joined(place: string, level: string): string {
  return place === "" ? level : `${place}|${level}`;
}
