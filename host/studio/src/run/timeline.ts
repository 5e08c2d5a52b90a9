// The timeline of a run: the fold of its event outlines. It has no part of React, so that views
// and tests read it as they like.
import { isModelCall } from "../api/call.ts";
import type { EventOutline, OutlineOf as Of } from "../api/log.ts";
import { digestText } from "../part/digest.ts";
import { newFacts, newTotals, type RunFacts, type Totals } from "./facts.ts";
import { type NodeState, nodeStates } from "./node-states.ts";
import { type Attempt, type Origin, Places, type Task } from "./places.ts";
import type { Row, RowStatus } from "./row.ts";
import { addDeltas, restart } from "./streamed.ts";
import { addTimes, addUse, type Sums, sumsOf } from "./sums.ts";
import { addTaken, type CasesOfBranch, type TakenCases } from "./taken.ts";
import {
  type CallState,
  type Collapsed,
  pathOf,
  rowsOf,
  shownIn,
  type TreeNode,
  touch,
} from "./tree.ts";

/** Characters of the payload of an interrupt that its row has. */
const PAYLOAD_CHARS = 300;

/** Levels of messages that are failures. */
const FAILED_LEVELS = new Set(["error", "stderr"]);

/** The state of what was in progress when the run ended, by the status of the run. */
const ENDS: Readonly<Record<string, RowStatus>> = {
  completed: "done",
  interrupted: "asked",
  failed: "failed",
};

/** The fold of the events of a run. */
export class Timeline {
  readonly run: string;
  readonly facts: RunFacts = newFacts();
  readonly #places = new Places();
  readonly #totals: Totals = newTotals();
  /** The node of each event that has one. */
  readonly #nodes = new Map<number, TreeNode>();
  readonly #interrupts = new Map<string, TreeNode>();
  readonly #taken = new Map<string, CasesOfBranch>();
  #lastSeq = 0;
  #version = 0;

  constructor(run: string) {
    this.run = run;
  }

  /** Sequence number of the newest event. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Differs after each event. */
  get version(): number {
    return this.#version;
  }

  /** True if the run has ended. It has no further events then. */
  get isOver(): boolean {
    return this.facts.status !== undefined;
  }

  /** Returns the rows in order. The rows below those in `collapsed` are left out. */
  rows(collapsed: Collapsed = new Set()): Row[] {
    return rowsOf(this.#places.root, collapsed);
  }

  /** Returns the namespaces of the subgraphs that ran. */
  namespaces(): string[] {
    const graphs = this.rows().filter(({ kind }) => kind === "graph");
    return [...new Set(graphs.map(({ namespace }) => namespace))];
  }

  totals(): Totals {
    return { ...this.#totals };
  }

  /** Returns the sums of a row; `undefined` if there is no such row. */
  sumsOf(id: string): Sums | undefined {
    const node = this.#places.byId(id);
    return node && sumsOf(node);
  }

  /**
   * Returns the ids of the rows around an event and of its own row, from the outermost one. `row` is
   * the id of another row that the event belongs to.
   */
  pathTo(seq: number, row?: string): readonly string[] {
    const path: string[] = [];
    const own = row === undefined ? undefined : this.#places.byId(row);
    let node = own ?? this.#nodes.get(seq);
    for (; node?.parent; node = node.parent) path.unshift(node.id);
    return path;
  }

  /** Returns the id of the row of an event; `undefined` if it has none. */
  rowOf(seq: number): string | undefined {
    const node = this.#nodes.get(seq);
    return node && shownIn(node).id;
  }

  /** Returns the states of the nodes that ran, by `nodeKey`. */
  nodes(): ReadonlyMap<string, NodeState> {
    return nodeStates(this.#places.tasks.values());
  }

  /** Returns the cases of branches that the run took. */
  taken(): TakenCases {
    return this.#taken;
  }

  /**
   * Adds an event. One that the timeline has already is ignored, so that a stream may begin
   * anywhere before its end.
   */
  apply(event: EventOutline): void {
    if (event.run !== this.run || event.seq <= this.#lastSeq) return;
    this.#lastSeq = event.seq;
    this.#version += 1;
    const node = this.#add(event);
    if (node !== undefined) this.#nodes.set(event.seq, node);
  }

  /** Adds an event, and returns the node that shows it. */
  #add(event: EventOutline): TreeNode | undefined {
    switch (event.type) {
      case "run_started":
        return this.#runStarted(event);
      case "run_ended":
        this.#runEnded(event);
        return undefined;
      case "task_started":
        return this.#taskStarted(event);
      case "task_finished":
        return this.#taskFinished(event);
      case "task_failed":
        return this.#taskFailed(event);
      case "call_started":
        return this.#callStarted(event);
      case "streamed":
        return this.#streamed(event);
      case "called":
        return this.#called(event);
      case "asked":
        return this.#asked(event);
      case "checkpointed":
        return this.#checkpointed(event);
      case "custom":
        return this.#message(event, event.name);
      case "progress":
        return this.#message(event, event.message);
      case "log": {
        const status = FAILED_LEVELS.has(event.level) ? "failed" : "done";
        return this.#message(event, `${event.level}: ${event.message}`, status);
      }
      default:
        return this.#other(event);
    }
  }

  /** Adds an event that changes the thread. Types of later hosts are left out. */
  #other(event: EventOutline): TreeNode | undefined {
    switch (event.type) {
      case "answered":
        this.#answered(event.interrupt);
        return this.#change(event, event.principal?.user ?? event.principal?.key ?? "");
      case "reopened":
        if (!event.namespace) this.facts.checkpoint = event.to;
        return this.#change(event, String(event.to));
      case "forked":
        this.facts.fork = { checkpoint: event.from, call: event.call ?? undefined };
        return this.#change(event, String(event.from));
      case "settled":
        return this.#change(event, event.decision.kind);
      case "migrated":
        return this.#change(event, `${digestText(event.from)} → ${digestText(event.to)}`);
      default:
        return undefined;
    }
  }

  #runStarted(event: Of<"run_started">): TreeNode | undefined {
    const { facts } = this;
    if (facts.startedMs === undefined) {
      const { graph, digest, reason, seq: firstSeq, at_ms: startedMs } = event;
      Object.assign(facts, { graph, digest, reason, firstSeq, startedMs });
      return undefined;
    }
    // The host stopped while the run was active. Whatever was in progress has no end.
    facts.recoveries += 1;
    for (const node of [...this.#places.open]) {
      if (node.kind === "attempt" || node.kind === "call") this.#places.end(node, "lost");
    }
    return this.#change(event, "");
  }

  #runEnded({ status, failure, drained, store_us, at_ms }: Of<"run_ended">): void {
    const { facts } = this;
    this.#totals.storeUs += store_us ?? 0;
    Object.assign(facts, { status, endedMs: at_ms, isDrained: drained === true });
    facts.failure = failure ?? undefined;
    for (const node of [...this.#places.open]) this.#places.end(node, endOf(node, status));
  }

  #taskStarted(event: Of<"task_started">): TreeNode {
    const { task: id, node, step, attempt } = event;
    const at = originOf(event);
    const task = this.#places.task(this.#graph(event), id, node, at, step);
    return this.#places.start(task, attempt, at).node;
  }

  #taskFinished(event: Of<"task_finished">): TreeNode {
    const [task, { node }] = this.#attempt(event, event.node);
    task.start.base = event.base;
    task.node.number = event.index;
    node.seq = event.seq;
    node.durationUs = event.duration_us;
    node.detail = event.written.map(({ channel }) => channel).join(", ");
    this.#places.end(node, event.cached === true ? "cached" : "done");
    if (event.cached !== true) addTimes(this.#totals, node);
    return node;
  }

  #taskFailed(event: Of<"task_failed">): TreeNode {
    const [, { node }] = this.#attempt(event, event.node);
    node.seq = event.seq;
    node.durationUs = Math.max(0, event.at_ms - node.startMs) * 1_000;
    node.detail = event.failure.message;
    node.code = event.failure.code;
    for (const child of node.children) this.#places.lose(child);
    this.#places.end(node, "failed");
    addTimes(this.#totals, node);
    return node;
  }

  #callStarted(event: Of<"call_started">): TreeNode {
    const [node, call] = this.#call(event);
    Object.assign(node, { seq: event.seq, startMs: event.at_ms, durationUs: undefined });
    node.status = "running";
    this.#places.open.add(node);
    describe(node, call, event);
    call.requestBytes = event.request_bytes ?? undefined;
    restart(call);
    return node;
  }

  #streamed(event: Of<"streamed">): TreeNode {
    const [node, call] = this.#call(event);
    addDeltas(call, event.deltas);
    touch(node);
    return node;
  }

  #called(event: Of<"called">): TreeNode {
    const [node, call, task] = this.#call(event);
    const { seq, started_ms: startMs, duration_us: durationUs } = event;
    Object.assign(node, { seq, startMs, durationUs });
    describe(node, call, event);
    call.model = event.model ?? undefined;
    call.provider = event.provider ?? undefined;
    call.tries = event.tries ?? undefined;
    call.requestBytes = event.request_bytes;
    call.resultBytes = event.result_bytes ?? undefined;
    call.requestDigest = event.digest;
    call.resultDigest = event.result_digest ?? undefined;
    call.tokens = event.tokens ?? undefined;
    call.cost = event.cost ?? undefined;
    call.storeUs = event.store_us ?? 0;
    call.reused = event.reused ?? undefined;
    node.code = event.failure?.code;
    if (event.failure != null) node.detail = event.failure.message;
    const done = call.reused === undefined ? "done" : "reused";
    this.#places.end(node, event.ok ? done : "failed");
    if (event.ok) task.answered.set(pathOf(call.scope, call.call), node);
    this.#count(call);
    return node;
  }

  #count(call: CallState): void {
    const totals = this.#totals;
    totals.calls += 1;
    if (isModelCall(call.function) && call.reused === undefined) totals.modelCalls += 1;
    addUse(totals, call);
  }

  #asked(event: Of<"asked">): TreeNode {
    const [, attempt] = this.#attempt(event, event.node);
    const { interrupt: label, call: number, scope = [] } = event;
    const { value } = event.payload;
    const detail = value === undefined ? "" : JSON.stringify(value).slice(0, PAYLOAD_CHARS);
    const status = event.answered === true ? "done" : "asked";
    if (status === "asked") {
      // The tools around the interrupt wait for the answer, too.
      const around = scope.map((_, end) => attempt.calls.get(scope.slice(0, end + 1).join(".")));
      for (const node of [...around, attempt.node]) if (node) this.#places.end(node, "asked");
    }
    const more = { number, status, detail } as const;
    const node = this.#places.add(attempt.node, originOf(event), "interrupt", label, more);
    this.#interrupts.set(label, node);
    return node;
  }

  /** Marks an interrupt as answered. Most are answered in another run. */
  #answered(interrupt: string): void {
    const node = this.#interrupts.get(interrupt);
    if (node !== undefined) this.#places.end(node, "done");
  }

  #checkpointed(event: Of<"checkpointed">): TreeNode {
    const graph = this.#graph(event);
    const detail = event.changed.join(", ");
    addTaken(this.#taken, event);
    if (event.source === "input" && graph.namespace === "") this.facts.input ??= event.checkpoint;
    graph.checkpoint = event.checkpoint;
    graph.nextStep = event.step;
    if (!event.namespace) this.facts.checkpoint = event.checkpoint;
    const step = graph.lastStep;
    if (event.source !== "loop" || step === undefined) return this.#change(event, detail);
    Object.assign(step, { seq: event.seq, detail });
    step.durationUs = Math.max(0, event.at_ms - step.startMs) * 1_000;
    this.#places.end(step, "done");
    if (event.next.length === 0 && event.namespace) this.#places.end(graph.node, "done");
    return step;
  }

  #message(
    event: Of<"custom" | "progress" | "log">,
    detail: string,
    status: RowStatus = "done",
  ): TreeNode {
    const [, { node }] = this.#attempt(event, event.node);
    return this.#places.add(node, originOf(event), "message", event.type, { detail, status });
  }

  /** Adds a change of the thread in the course of the run. */
  #change(event: EventOutline, detail: string): TreeNode {
    const label = event.type === "run_started" ? "recovery" : event.type;
    const parent = this.#graph(event).node;
    return this.#places.add(parent, originOf(event), "change", label, { detail, status: "done" });
  }

  #graph(event: EventOutline) {
    return this.#places.graph(event.namespace ?? "", originOf(event));
  }

  /** Returns the newest attempt of the task of an event, with the task. */
  #attempt(event: EventOutline & { task: string }, node: string): [Task, Attempt] {
    const at = originOf(event);
    const task = this.#places.task(this.#graph(event), event.task, node, at);
    return [task, this.#places.attempt(task, at)];
  }

  /** Returns the call of an event, with its facts and its task. */
  #call(event: Of<"call_started" | "streamed" | "called">): [TreeNode, CallState, Task] {
    const [task, attempt] = this.#attempt(event, "node" in event ? event.node : "");
    const { scope = [], call } = event;
    const node = this.#places.call(task, attempt, scope, call, originOf(event));
    if (node.call === undefined) throw new Error("a call has facts");
    return [node, node.call, task];
  }
}

function originOf({ seq, at_ms }: EventOutline): Origin {
  return { seq, startMs: at_ms };
}

/** Returns the state of what was in progress when the run ended. */
function endOf({ kind, children }: TreeNode, status: string): RowStatus {
  // An attempt that runs a subgraph ends as the run does; any other was given up.
  const isAround = kind === "step" || kind === "graph" || children.some(isGraph);
  return (isAround || status === "completed" ? ENDS[status] : undefined) ?? "lost";
}

function isGraph({ kind }: TreeNode): boolean {
  return kind === "graph";
}

function describe(
  node: TreeNode,
  call: CallState,
  { function: name, summary }: Of<"call_started" | "called">,
): void {
  node.label = name;
  node.detail = summary;
  call.function = name;
  call.summary = summary;
  touch(node);
}
