// The tree of a run, which grows with its events, and its rows.
import { CALLS } from "../api/call.ts";
import type { Ask, CallFacts, Row, RowKind, RowStatus, TaskStart } from "./row.ts";

/** The facts of a call while it is in progress. */
export type CallState = { -readonly [K in keyof CallFacts]: CallFacts[K] } & { asks: Ask[] };

/** A part of a run. */
export interface TreeNode {
  readonly id: string;
  readonly kind: RowKind | "run";
  readonly parent: TreeNode | null;
  namespace: string;
  readonly children: TreeNode[];
  label: string;
  number: number | undefined;
  node: string | undefined;
  seq: number;
  status: RowStatus;
  startMs: number;
  durationUs: number | undefined;
  detail: string;
  code: string | undefined;
  replayed: number;
  call: CallState | undefined;
  /** Number of subgraphs among the children. */
  graphs: number;
  /** The row of the node, until the node changes. */
  row: Row | undefined;
}

/** Creates a node without children. A run has thousands, so nothing is copied for it. */
export function newNode(id: string, kind: TreeNode["kind"], parent: TreeNode | null): TreeNode {
  return {
    id,
    kind,
    parent,
    namespace: parent?.namespace ?? "",
    children: [],
    label: "",
    number: undefined,
    node: parent?.node,
    seq: 0,
    status: "running",
    startMs: 0,
    durationUs: undefined,
    detail: "",
    code: undefined,
    replayed: 0,
    call: undefined,
    graphs: 0,
    row: undefined,
  };
}

/** Adds a node to its parent, at the end, or before the calls with a greater number. */
export function place(node: TreeNode): TreeNode {
  const siblings = node.parent?.children ?? [];
  let index = siblings.length;
  if (node.kind === "call") {
    while (index > 0 && isAfter(siblings[index - 1], node)) index -= 1;
  }
  siblings.splice(index, 0, node);
  if (node.parent !== null && node.kind === "graph") node.parent.graphs += 1;
  return node;
}

function isAfter(sibling: TreeNode | undefined, node: TreeNode): boolean {
  return sibling?.kind === "call" && (sibling.number ?? 0) > (node.number ?? 0);
}

/** Notes that a node has changed. A task shows what its last attempt is. */
export function touch(node: TreeNode): void {
  node.row = undefined;
  if (node.kind === "attempt" && node.parent !== null) node.parent.row = undefined;
}

/** Returns the path of a call in its task, such as `0.2`. */
export function pathOf(scope: readonly number[], call: number): string {
  return [...scope, call].join(".");
}

/**
 * Creates the facts of a call of which nothing else is known. If the log of the run lacks a call
 * that made others, that call is a tool call.
 */
export function newCall(
  { id: task, start }: { id: string; start: TaskStart },
  scope: readonly number[],
  call: number,
): CallState {
  return {
    task,
    start,
    scope,
    call,
    function: CALLS.callTool,
    summary: "",
    model: undefined,
    provider: undefined,
    tries: undefined,
    requestBytes: undefined,
    resultBytes: undefined,
    requestDigest: undefined,
    resultDigest: undefined,
    tokens: undefined,
    cost: undefined,
    storeUs: 0,
    reused: undefined,
    text: "",
    reasoning: "",
    asks: [],
  };
}

/** Tells for which rows those below them are left out, by id. */
export type Collapsed = Pick<ReadonlySet<string>, "has">;

/** Returns the innermost row that shows a node. */
export function shownIn(node: TreeNode): TreeNode {
  return node.parent !== null && isHidden(node) ? shownIn(node.parent) : node;
}

/** Returns true if the row of a node would say nothing that the row of its parent does not say. */
function isHidden({ kind, parent }: TreeNode): boolean {
  if (kind === "attempt") return parent?.children.length === 1;
  return kind === "graph" && parent?.graphs === 1;
}

/** Returns the nodes whose rows are directly below that of a node. */
function shownChildren(node: TreeNode): readonly TreeNode[] {
  if (!node.children.some(isHidden)) return node.children;
  return node.children.flatMap((child) => (isHidden(child) ? shownChildren(child) : [child]));
}

/** Returns the rows below the root. The rows below those in `collapsed` are left out. */
export function rowsOf(root: TreeNode, collapsed: Collapsed): Row[] {
  const rows: Row[] = [];
  const add = (nodes: readonly TreeNode[], depth: number, parent: string | null) => {
    for (const node of nodes) {
      const children = shownChildren(node);
      const isOpen = children.length > 0 && !collapsed.has(node.id);
      rows.push(rowOf(node, { depth, parent, childCount: children.length, isOpen }));
      if (isOpen) add(children, depth + 1, node.id);
    }
  };
  add(shownChildren(root), 0, null);
  return rows;
}

type Placement = Pick<Row, "depth" | "parent" | "childCount" | "isOpen">;

function rowOf(node: TreeNode, placement: Placement): Row {
  const { row } = node;
  if (row !== undefined && isPlaced(row, placement)) return row;
  node.row = newRow(node, placement);
  return node.row;
}

function isPlaced(row: Row, { depth, parent, childCount, isOpen }: Placement): boolean {
  return (
    row.depth === depth &&
    row.parent === parent &&
    row.childCount === childCount &&
    row.isOpen === isOpen
  );
}

function newRow(node: TreeNode, { depth, parent, childCount, isOpen }: Placement): Row {
  const { id, kind, namespace, label, number, call } = node;
  // The outcome of a task is that of its last attempt.
  const outcome = (kind === "task" ? node.children.at(-1) : undefined) ?? node;
  return {
    id,
    seq: outcome.seq,
    // The root has no row.
    kind: kind as RowKind,
    depth,
    parent,
    label,
    number,
    node: node.node,
    namespace,
    status: outcome.status,
    startMs: node.startMs,
    durationUs: outcome.durationUs,
    detail: outcome.detail,
    code: outcome.code,
    replayed: outcome.replayed,
    call,
    childCount,
    isOpen,
  };
}
