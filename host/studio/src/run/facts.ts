// What the events of a run say about it as a whole.
import type { OutlineOf } from "../api/log.ts";
import { newSums, type Sums } from "./sums.ts";

/** What the events say about the run as a whole. */
export interface RunFacts {
  graph: string | undefined;
  /** Digest of the graph with its components. */
  digest: string | undefined;
  reason: string | undefined;
  /** Sequence number of the first event. */
  firstSeq: number | undefined;
  /** Number of the checkpoint with the input; `undefined` if the run has none. */
  input: number | undefined;
  /** `undefined` before the end of the run. */
  status: string | undefined;
  startedMs: number | undefined;
  endedMs: number | undefined;
  failure: { code: string; message: string } | undefined;
  /** How often the run continued after its host had stopped. */
  recoveries: number;
  isDrained: boolean;
  /** What the run continued from, if it is a fork. */
  fork: Fork | undefined;
  /** The newest checkpoint of the root graph that the run made, or to which it returned. */
  checkpoint: number | undefined;
}

/** Where a fork begins. */
export interface Fork {
  readonly checkpoint: number;
  /** The host call whose result was replaced, with the sequence number of its event. */
  readonly call: ForkedCall | undefined;
}

export type ForkedCall = NonNullable<OutlineOf<"forked">["call"]>;

/** Sums over the run. Replayed calls do not count. */
export interface Totals extends Sums {
  calls: number;
  /** Model calls without those whose result was reused. */
  modelCalls: number;
}

/** Returns the facts of a run without events. */
export function newFacts(): RunFacts {
  return {
    graph: undefined,
    digest: undefined,
    reason: undefined,
    firstSeq: undefined,
    input: undefined,
    status: undefined,
    startedMs: undefined,
    endedMs: undefined,
    failure: undefined,
    recoveries: 0,
    isDrained: false,
    fork: undefined,
    checkpoint: undefined,
  };
}

/** Returns the sums over a run without events. */
export function newTotals(): Totals {
  return { calls: 0, modelCalls: 0, ...newSums() };
}
