// The states of the nodes of a run's graphs.
import type { Task } from "./places.ts";
import type { RowStatus } from "./row.ts";
import type { TreeNode } from "./tree.ts";

/** The state of a node of a graph. */
export interface NodeState {
  namespace: string;
  node: string;
  /** State of its newest task. */
  status: RowStatus;
  tasks: number;
  running: number;
  /** The tasks of its newest superstep. They run at once. */
  newest: readonly TaskState[];
}

/** The state of a task. */
export interface TaskState {
  task: string;
  status: RowStatus;
  /** Sequence number of the event that says most about the task. */
  seq: number;
}

/** Returns the states of the nodes of tasks, by `nodeKey`. The newest task is the last one. */
export function nodeStates(tasks: Iterable<Task>): ReadonlyMap<string, NodeState> {
  const states = new Map<string, NodeState>();
  const newest = new Map<string, { step: TreeNode | null; tasks: TaskState[] }>();
  for (const { id: task, node, attempt } of tasks) {
    const { namespace, label, parent } = node;
    const { status, seq } = attempt?.node ?? node;
    const key = nodeKey(namespace, label);
    const before = states.get(key);
    const running = (before?.running ?? 0) + Number(status === "running");
    const tasks = (before?.tasks ?? 0) + 1;
    const last = newest.get(key);
    const group = last?.step === parent ? last : { step: parent, tasks: [] };
    group.tasks.push({ task, status, seq });
    newest.set(key, group);
    states.set(key, { namespace, node: label, status, tasks, running, newest: group.tasks });
  }
  return states;
}

/** Returns the key of a node. */
export function nodeKey(namespace: string, node: string): string {
  return `${namespace}/${node}`;
}
