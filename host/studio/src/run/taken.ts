// The cases of branches that a run took.
import type { OutlineOf } from "../api/log.ts";
import { nodeKey } from "./node-states.ts";

/** How often a run took a case. */
export interface TakenCase {
  readonly count: number;
  /** Sequence number of the newest event that names the case. */
  readonly seq: number;
}

/** The cases that a run took, by their index in the branch. */
export type CasesOfBranch = ReadonlyMap<number, TakenCase>;

/** The cases that a run took, by the `nodeKey` of the branch. */
export type TakenCases = ReadonlyMap<string, CasesOfBranch>;

/** Adds the cases that an event names. */
export function addTaken(
  cases: Map<string, CasesOfBranch>,
  { namespace = "", seq, taken = [] }: OutlineOf<"checkpointed">,
): void {
  for (const { branch, case: index } of taken) {
    const key = nodeKey(namespace, branch);
    const before = cases.get(key) ?? new Map<number, TakenCase>();
    const count = (before.get(index)?.count ?? 0) + 1;
    cases.set(key, new Map(before).set(index, { count, seq }));
  }
}
