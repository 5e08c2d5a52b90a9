// Where the events of a run belong: graphs, supersteps, tasks, attempts and calls, by their names
// in the log.
import type { RowKind, TaskStart } from "./row.ts";
import { newCall, newNode, pathOf, place, type TreeNode, touch } from "./tree.ts";

/** A graph of the run, with its supersteps. */
export interface Graph {
  readonly node: TreeNode;
  readonly namespace: string;
  readonly steps: Map<number, TreeNode>;
  lastStep: TreeNode | undefined;
  /** Number of the last checkpoint, and the superstep that runs next. */
  checkpoint: number | undefined;
  nextStep: number | undefined;
  /** The newest task of each node. */
  readonly tasks: Map<string, Task>;
}

/** A task with its newest attempt. */
export interface Task {
  readonly id: string;
  readonly node: TreeNode;
  readonly start: TaskStart;
  attempt: Attempt | undefined;
  /** Successful calls by path. A later attempt replays them. */
  readonly answered: Map<string, TreeNode>;
}

export interface Attempt {
  readonly node: TreeNode;
  readonly number: number;
  readonly calls: Map<string, TreeNode>;
  readonly graphs: Map<string, Graph>;
}

/** An event, as far as it tells where a node comes from. */
export interface Origin {
  seq: number;
  startMs: number;
}

/** The parts of a namespace: its graphs, and a task after the name of its node. */
const LEVELS = "|";
const TASK = ":";
const CALL = ".";

/** What is before the number of a node in its id. */
const ID = "n";

/** Maximum number of replayed calls that an attempt shows. Its row has the number of all. */
const REPLAYED_ROWS = 500;

export class Places {
  readonly root: TreeNode = newNode("", "run", null);
  /** Nodes that have not ended. */
  readonly open = new Set<TreeNode>();
  readonly tasks = new Map<string, Task>();
  readonly #rootGraph = newGraph(this.root, "");
  readonly #nodes: TreeNode[] = [];

  /** Adds a node below another one. `more` has what differs from a node that has just begun. */
  add(
    parent: TreeNode,
    { seq, startMs }: Origin,
    kind: RowKind,
    label: string,
    more?: Partial<TreeNode>,
  ): TreeNode {
    const added = newNode(idOf(`${this.#nodes.length}`), kind, parent);
    this.#nodes.push(added);
    added.seq = seq;
    added.startMs = startMs;
    added.label = label;
    if (more !== undefined) Object.assign(added, more);
    place(added);
    if (added.status === "running") this.open.add(added);
    touch(parent);
    return added;
  }

  /** Returns the node with this id. */
  byId(id: string): TreeNode | undefined {
    return this.#nodes[Number(numberOf(id))];
  }

  /** Notes that a node has ended. */
  end(node: TreeNode, status: TreeNode["status"]): void {
    node.status = status;
    this.open.delete(node);
    touch(node);
  }

  /** Returns the graph of a namespace. */
  graph(namespace: string, at: Origin): Graph {
    if (namespace === "") return this.#rootGraph;
    const cut = namespace.lastIndexOf(LEVELS);
    const around = this.graph(namespace.slice(0, Math.max(cut, 0)), at);
    const owner = this.#owner(around, namespace.slice(cut + 1), at);
    const attempt = owner.attempt ?? this.start(owner, 1, at);
    const known = attempt.graphs.get(namespace);
    if (known !== undefined) return known;
    const node = this.add(attempt.node, at, "graph", namespace, { namespace });
    const graph = newGraph(node, namespace);
    attempt.graphs.set(namespace, graph);
    return graph;
  }

  /** Returns the task that runs a graph. A graph that keeps its state belongs to its node. */
  #owner(around: Graph, level: string, at: Origin): Task {
    const [node = "", place] = level.split(TASK, 2);
    if (place !== undefined) return this.task(around, place.split(CALL, 1)[0] ?? "", node, at);
    return around.tasks.get(node) ?? this.task(around, `${around.namespace}/${node}`, node, at);
  }

  /** Returns a superstep of a graph. */
  step(graph: Graph, number: number, at: Origin): TreeNode {
    const known = graph.steps.get(number);
    if (known !== undefined) return known;
    const step = this.add(graph.node, at, "step", "", { number });
    graph.steps.set(number, step);
    graph.lastStep = step;
    return step;
  }

  /** Returns a task. One that is not known is in the given superstep, or in the current one. */
  task(graph: Graph, id: string, name: string, at: Origin, step?: number): Task {
    const known = this.tasks.get(id);
    if (known !== undefined) return known;
    const current = step ?? graph.nextStep ?? graph.lastStep?.number ?? 0;
    const parent = this.step(graph, current, at);
    const node = this.add(parent, at, "task", name, { node: name });
    // The row of a task shows the state of its last attempt.
    this.open.delete(node);
    const start = { base: graph.checkpoint };
    const task = { id, node, start, attempt: undefined, answered: new Map<string, TreeNode>() };
    this.tasks.set(id, task);
    graph.tasks.set(name, task);
    return task;
  }

  /**
   * Starts an attempt. A fork begins an attempt with the calls that it carries over, and continues
   * it when the task is executed.
   */
  start(task: Task, number: number, at: Origin): Attempt {
    const before = task.attempt;
    if (before?.number === number && before.node.status === "running") {
      Object.assign(before.node, at);
      touch(before.node);
      return before;
    }
    if (before?.node.status === "running") this.lose(before.node);
    const node = this.add(task.node, at, "attempt", task.node.label, { number });
    const attempt = { node, number, calls: new Map<string, TreeNode>(), graphs: new Map() };
    task.attempt = attempt;
    this.#replay(task, attempt, at);
    return attempt;
  }

  /** Returns the newest attempt of a task. */
  attempt(task: Task, at: Origin): Attempt {
    return task.attempt ?? this.start(task, 1, at);
  }

  /** Returns a call of an attempt. */
  call(task: Task, attempt: Attempt, scope: readonly number[], call: number, at: Origin): TreeNode {
    const path = pathOf(scope, call);
    const known = attempt.calls.get(path);
    if (known !== undefined) return known;
    const outer = scope.at(-1);
    const parent =
      outer === undefined ? attempt.node : this.call(task, attempt, scope.slice(0, -1), outer, at);
    const facts = newCall(task, scope, call);
    const node = this.add(parent, at, "call", facts.function, { number: call, call: facts });
    attempt.calls.set(path, node);
    return node;
  }

  /** Marks a node, and all in it that have not ended, as lost. */
  lose(node: TreeNode): void {
    for (const child of node.children) this.lose(child);
    if (this.open.has(node)) this.end(node, "lost");
  }

  /** Adds the calls that an attempt replays: those of earlier attempts that succeeded. */
  #replay(task: Task, attempt: Attempt, at: Origin): void {
    const { answered } = task;
    const isWithin = (path: string) => {
      const numbers = path.split(CALL);
      return numbers.some((_, end) => end > 0 && answered.has(numbers.slice(0, end).join(CALL)));
    };
    // The calls of a tool whose own call is replayed are not made again.
    const replayed = [...answered].filter(([path]) => !isWithin(path));
    attempt.node.replayed = replayed.length;
    for (const [, { seq, label, call: facts, durationUs }] of replayed.slice(0, REPLAYED_ROWS)) {
      if (facts === undefined) continue;
      const node = this.call(task, attempt, facts.scope, facts.call, at);
      Object.assign(node, { seq, label, durationUs, call: { ...facts } });
      this.end(node, "replayed");
    }
  }
}

/** Returns the id of the node with this number, which addresses have. */
export function idOf(number: string): string {
  return ID + number;
}

/** Returns the number of the node with this id. */
export function numberOf(id: string): string {
  return id.slice(ID.length);
}

function newGraph(node: TreeNode, namespace: string): Graph {
  return {
    node,
    namespace,
    steps: new Map(),
    lastStep: undefined,
    checkpoint: undefined,
    nextStep: undefined,
    tasks: new Map(),
  };
}
