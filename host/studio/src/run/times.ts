// Where the time of an attempt went: into code of guests, into services outside of the host, or
// into the store.
import type { TreeNode } from "./tree.ts";

export interface Times {
  /** Time of the attempt without its host calls, its subgraphs and the store, in microseconds. */
  guestUs: number;
  /** Time in which at least one host call was in progress, in microseconds. */
  providerUs: number;
  /** Time in which at least one host call waited for the store, in microseconds. */
  storeUs: number;
}

/** Start and end, in microseconds since 1970. */
type Interval = readonly [start: number, end: number];

/** Returns the times of an attempt that has ended. */
export function timesOf(attempt: TreeNode): Times {
  const whole = intervalOf(attempt);
  if (whole === undefined) return { guestUs: 0, providerUs: 0, storeUs: 0 };
  const calls = leafCalls(attempt);
  const others = attempt.children.filter(({ kind }) => kind === "graph").flatMap(attemptsIn);
  const waits = storeWaits(attempt);
  const [start, end] = whole;
  return {
    guestUs: end - start - lengthOf([...calls, ...others, ...waits], whole),
    providerUs: lengthOf(calls, whole),
    storeUs: lengthOf(waits, whole),
  };
}

function intervalOf({ startMs, durationUs }: TreeNode): Interval | undefined {
  if (durationUs === undefined) return undefined;
  return [startMs * 1_000, startMs * 1_000 + durationUs];
}

/** Returns the intervals of the calls that made no calls themselves, and were executed. */
function leafCalls(node: TreeNode): Interval[] {
  return node.children.flatMap((child) => {
    if (child.kind !== "call") return [];
    const inner = leafCalls(child);
    if (inner.length > 0) return inner;
    const interval = isExecuted(child) ? intervalOf(child) : undefined;
    return interval === undefined ? [] : [interval];
  });
}

/** Returns the intervals before calls in which they waited for the store. */
function storeWaits(node: TreeNode): Interval[] {
  return node.children.flatMap((child) => {
    const { call, startMs } = child;
    if (call === undefined) return [];
    const [startUs, waitUs] = [startMs * 1_000, isExecuted(child) ? call.storeUs : 0];
    const own: Interval[] = waitUs > 0 ? [[startUs - waitUs, startUs]] : [];
    return [...own, ...storeWaits(child)];
  });
}

function isExecuted({ status }: TreeNode): boolean {
  return status === "done" || status === "failed";
}

/** Returns the intervals of the attempts of a subgraph. */
function attemptsIn(graph: TreeNode): Interval[] {
  const tasks = graph.children.flatMap(({ children }) => children);
  const intervals = tasks.flatMap(({ children }) => children.map(intervalOf));
  return intervals.filter((interval) => interval !== undefined);
}

/** Returns the length of the union of intervals within another one. */
function lengthOf(intervals: readonly Interval[], [from, to]: Interval): number {
  const sorted = [...intervals].sort(([one], [other]) => one - other);
  let length = 0;
  let reached = from;
  for (const [start, end] of sorted) {
    const first = Math.max(start, reached);
    const last = Math.min(end, to);
    if (last <= first) continue;
    length += last - first;
    reached = last;
  }
  return length;
}
