// What a part of a run took and cost: the sums over the attempts and calls in it.
import { type Times, timesOf } from "./times.ts";
import type { TreeNode } from "./tree.ts";

/** Sums over the attempts and calls in a part. An attempt has its times when it has ended. */
export interface Sums extends Times {
  input: number;
  output: number;
  /** `undefined` if no call has a cost. */
  cost: number | undefined;
}

/** Returns the sums of a part. What was not executed in the run does not count. */
export function sumsOf(part: TreeNode): Sums {
  const sums: Sums = {
    input: 0,
    output: 0,
    cost: undefined,
    guestUs: 0,
    providerUs: 0,
    storeUs: 0,
  };
  addTo(sums, part);
  return sums;
}

function addTo(sums: Sums, node: TreeNode): void {
  const { kind, status, call, children } = node;
  if (kind === "attempt" && status !== "cached") {
    const { guestUs, providerUs, storeUs } = timesOf(node);
    sums.guestUs += guestUs;
    sums.providerUs += providerUs;
    sums.storeUs += storeUs;
  }
  if (call !== undefined && status !== "replayed") {
    sums.input += call.tokens?.input ?? 0;
    sums.output += call.tokens?.output ?? 0;
    if (call.cost !== undefined) sums.cost = (sums.cost ?? 0) + call.cost;
  }
  for (const child of children) addTo(sums, child);
}
