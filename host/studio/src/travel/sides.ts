// The rows of one run in a comparison, and the search for the rows of two runs that belong together.
import type { Fork, ForkedCall } from "../run/facts.ts";
import type { Row } from "../run/row.ts";
import type { Timeline } from "../run/timeline.ts";

/** The parent of the outermost rows. */
export const ROOT = null;

/** The names of the two runs of a comparison. */
export const SIDES = ["left", "right"] as const;

export type SideName = (typeof SIDES)[number];

/** One run of a comparison. */
export interface Side {
  /** Returns the rows directly below a row. */
  readonly of: (parent: string | null) => readonly Row[];
  /** True if the run continued from a state that another run had. */
  readonly isContinuation: boolean;
  readonly fork: Fork | undefined;
  /** Supersteps of the root graph: the first one, with its event, and the last one. */
  readonly firstStep: number;
  readonly firstStepSeq: number;
  readonly lastStep: number;
  /** The call of this run whose result the other run replaced. */
  readonly replaced: ForkedCall | undefined;
}

/** Reasons for which a run begins with an input, and not in the middle of a thread. */
const BEGINNINGS = new Set<string | undefined>(["input", undefined]);

const NO_ROWS: readonly Row[] = [];

/** Returns one run of a comparison with another one. */
export function sideOf(timeline: Timeline, other: Timeline): Side {
  const below = new Map<string | null, Row[]>();
  const rows = timeline.rows();
  for (const row of rows) {
    const siblings = below.get(row.parent);
    if (siblings === undefined) below.set(row.parent, [row]);
    else siblings.push(row);
  }
  const side = { of: (parent: string | null) => below.get(parent) ?? NO_ROWS };
  const steps = stepsOf(side);
  const { reason, fork } = timeline.facts;
  const replaced = other.facts.fork?.call;
  return {
    ...side,
    isContinuation: !BEGINNINGS.has(reason),
    fork,
    firstStep: steps[0]?.number ?? Number.POSITIVE_INFINITY,
    firstStepSeq: firstSeq(side, steps[0]),
    lastStep: steps.at(-1)?.number ?? Number.NEGATIVE_INFINITY,
    replaced: rows.some((row) => isCalled(row, replaced)) ? replaced : undefined,
  };
}

/** Returns the supersteps of the root graph. */
export function stepsOf(side: Pick<Side, "of">): readonly Row[] {
  return side.of(ROOT).filter(({ kind }) => kind === "step");
}

/** Returns a number before which no event belongs to a row or to what is below it. */
function firstSeq(side: Pick<Side, "of">, row: Row | undefined): number {
  if (row === undefined) return Number.POSITIVE_INFINITY;
  return side.of(row.id).reduce((least, child) => Math.min(least, firstSeq(side, child)), row.seq);
}

/** Returns true for the call that a fork names. Another thread may have an event of this number. */
function isCalled({ kind, seq, call }: Row, forked: ForkedCall | undefined): boolean {
  if (kind !== "call" || forked === undefined || seq !== forked.seq) return false;
  const path = [...(forked.scope ?? []), forked.call];
  if (call === undefined || call.task !== forked.task) return false;
  return path.join(".") === [...call.scope, call.call].join(".");
}

/** Returns the name of a graph without the id of its task, which differs in each run. */
export function pathlessName(namespace: string): string {
  const level = namespace.slice(namespace.lastIndexOf("|") + 1);
  return level.replace(/:[^.]*/, "");
}

/** Returns the key of a row of one side, or `undefined` for a row that is left for the next pass. */
type Keys = (side: SideName) => (row: Row) => string | undefined;

type Couple = readonly [left: Row | undefined, right: Row | undefined];

/**
 * Returns the rows of both runs, those with the same key together, in an order that is that of each
 * run as far as possible. Of several rows with one key, the first ones belong together. Rows that
 * have no partner after one pass may find one in the next.
 */
export function merged(
  left: readonly Row[],
  right: readonly Row[],
  passes: readonly Keys[],
): readonly Couple[] {
  const partners = new Map<Row, Row>();
  for (const keys of passes) match(left, right, keys, partners);
  const taken = new Set(partners.values());
  const places = new Map(right.map((row, index) => [row, index]));
  const couples: Couple[] = [];
  let next = 0;
  const addUntil = (end: number) => {
    for (; next < end; next += 1) {
      const row = right[next];
      if (row !== undefined && !taken.has(row)) couples.push([undefined, row]);
    }
  };
  for (const row of left) {
    const partner = partners.get(row);
    if (partner !== undefined) addUntil(places.get(partner) ?? 0);
    couples.push([row, partner]);
  }
  addUntil(right.length);
  return couples;
}

/** Adds the partners of rows that have none. */
function match(
  left: readonly Row[],
  right: readonly Row[],
  keys: Keys,
  partners: Map<Row, Row>,
): void {
  const taken = new Set(partners.values());
  const waiting = new Map<string, Row[]>();
  const [keyOf, keyOfRight] = [keys("left"), keys("right")];
  // The last row of a list is taken first.
  for (const row of right.toReversed()) {
    const key = taken.has(row) ? undefined : keyOfRight(row);
    if (key === undefined) continue;
    const rows = waiting.get(key);
    if (rows === undefined) waiting.set(key, [row]);
    else rows.push(row);
  }
  for (const row of left) {
    const key = partners.has(row) ? undefined : keyOf(row);
    const partner = key === undefined ? undefined : waiting.get(key)?.pop();
    if (partner !== undefined) partners.set(row, partner);
  }
}
