// What a part of a run took and cost: the sums over the attempts and calls in it.
import type { CallFacts } from "./row.ts";
import { type Times, timesOf } from "./times.ts";
import type { TreeNode } from "./tree.ts";

/** Sums over the attempts and calls in a part. An attempt has its times when it has ended. */
export interface Sums extends Times {
  input: number;
  output: number;
  /** `undefined` if no call has a cost. */
  cost: number | undefined;
}

/** Returns the sums of a part without attempts and calls. */
export function newSums(): Sums {
  return { input: 0, output: 0, cost: undefined, guestUs: 0, providerUs: 0, storeUs: 0 };
}

/** Returns the sums of a part. What was not executed in the run does not count. */
export function sumsOf(part: TreeNode): Sums {
  const sums = newSums();
  addPart(sums, part);
  return sums;
}

function addPart(sums: Sums, node: TreeNode): void {
  const { kind, status, call, children } = node;
  if (kind === "attempt" && status !== "cached") addTimes(sums, node);
  if (call !== undefined && status !== "replayed") addUse(sums, call);
  for (const child of children) addPart(sums, child);
}

/** Adds the times of an attempt. */
export function addTimes(sums: Sums, attempt: TreeNode): void {
  const { guestUs, providerUs, storeUs } = timesOf(attempt);
  sums.guestUs += guestUs;
  sums.providerUs += providerUs;
  sums.storeUs += storeUs;
}

/** Adds the tokens of a call and their cost. */
export function addUse(sums: Sums, { tokens, cost }: CallFacts): void {
  sums.input += tokens?.input ?? 0;
  sums.output += tokens?.output ?? 0;
  if (cost !== undefined) sums.cost = (sums.cost ?? 0) + cost;
}
