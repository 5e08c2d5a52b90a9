// Where the time of an attempt went: into code of guests, or into services outside of the host.
import type { TreeNode } from "./tree.ts";

export interface Times {
  /** Time of the attempt without its host calls and subgraphs, in microseconds. */
  guestUs: number;
  /** Time in which at least one host call was in progress, in microseconds. */
  providerUs: number;
}

/** Start and end, in microseconds since 1970. */
type Interval = readonly [start: number, end: number];

/** Returns the times of an attempt that has ended. */
export function timesOf(attempt: TreeNode): Times {
  const whole = intervalOf(attempt);
  if (whole === undefined) return { guestUs: 0, providerUs: 0 };
  const calls = leafCalls(attempt);
  const others = attempt.children.filter(({ kind }) => kind === "graph").flatMap(attemptsIn);
  const providerUs = lengthOf(calls, whole);
  const [start, end] = whole;
  return { guestUs: end - start - lengthOf([...calls, ...others], whole), providerUs };
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
    const isExecuted = child.status === "done" || child.status === "failed";
    const interval = isExecuted ? intervalOf(child) : undefined;
    return interval === undefined ? [] : [interval];
  });
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
