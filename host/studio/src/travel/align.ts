// Two timelines side by side: which rows of two runs belong together, and where the runs part. It
// knows only outlines, so it compares requests and results by their digests.
import { isTimeConversion, isVolatileCall } from "../api/call.ts";
import type { ForkedCall } from "../run/facts.ts";
import { type CallFacts, hasState, type Row, type RowStatus } from "../run/row.ts";
import type { Timeline } from "../run/timeline.ts";
import { merged, pathlessName, ROOT, type Side, type SideName, sideOf, stepsOf } from "./sides.ts";

/**
 * How the rows of a pair relate. `left` and `right`: only this run has the row. `carried`: likewise,
 * but the other run has taken over what the row stands for.
 */
export type Relation = "same" | "changed" | SideName | "carried";

/** A row of either run, or two that belong together. */
export interface Pair {
  readonly id: string;
  readonly depth: number;
  readonly left: Row | undefined;
  readonly right: Row | undefined;
  /** `changed` also if something below the rows differs. */
  readonly relation: Relation;
  /** Index of the pair that contains this one; -1 for the outermost ones. */
  readonly parent: number;
}

export interface Alignment {
  readonly pairs: readonly Pair[];
  /** Number of pairs before the one at which the runs part. */
  readonly common: number;
}

/** A pair with the pairs below it. */
interface Node {
  readonly left: Row | undefined;
  readonly right: Row | undefined;
  readonly relation: Relation;
  readonly children: readonly Node[];
}

const OTHER = { left: "right", right: "left" } as const;

/** States that mean the same for what follows. */
const ALIKE: Partial<Record<RowStatus, RowStatus>> = {
  replayed: "done",
  reused: "done",
  cached: "done",
};

/** States of rows whose content was taken over, and is not shown below them. */
const TAKEN_OVER = new Set<RowStatus | undefined>(["replayed", "reused", "cached"]);

/**
 * Aligns two runs. Of different threads, only a fork may have taken over what the other run did.
 */
export function align(left: Timeline, right: Timeline, isOneThread = true): Alignment {
  // What a fork has taken over comes before it.
  const isMirrored = left.facts.fork !== undefined && right.facts.fork === undefined;
  if (!isMirrored) return flattened(new Aligner(left, right, isOneThread).roots());
  const { pairs, common } = flattened(new Aligner(right, left, isOneThread).roots());
  return { pairs: pairs.map(mirrored), common };
}

/** Returns true if both runs did something, and nothing of it is common to them. */
export function isApart({ pairs, common }: Alignment): boolean {
  const isCompared = pairs.some(({ left }) => left) && pairs.some(({ right }) => right);
  return isCompared && common < pairs.length && !pairs.slice(0, common).some(isShared);
}

/** Returns true for what both runs did alike, or one of them did for both. */
function isShared({ left, right, relation }: Pair): boolean {
  if (relation === "carried") return true;
  const row = left ?? right;
  return relation === "same" && row !== undefined && hasState(row.kind);
}

function mirrored({ left, right, relation, ...rest }: Pair): Pair {
  const isAlone = relation === "left" || relation === "right";
  const other = isAlone ? OTHER[relation] : relation;
  return { ...rest, left: right, right: left, relation: other, id: idOf(right, left) };
}

function idOf(left: Row | undefined, right: Row | undefined): string {
  return `${left?.id ?? ""}~${right?.id ?? ""}`;
}

/**
 * Returns the pairs from where the runs part on, with those around the first one; all pairs if the
 * runs do not part.
 */
export function fromParting({ pairs, common }: Alignment): readonly Pair[] {
  if (common >= pairs.length) return pairs;
  const around: Pair[] = [];
  for (let pair = pairs[pairs[common]?.parent ?? -1]; pair; pair = pairs[pair.parent]) {
    around.unshift(pair);
  }
  return [...around, ...pairs.slice(common)];
}

class Aligner {
  readonly #sides: Readonly<Record<SideName, Side>>;
  /** Numbers of supersteps are comparable: one run continues from a state of the other one. */
  readonly #isByNumber: boolean;
  /** True if one run may have taken over supersteps of the other one. */
  readonly #isRelated: boolean;

  constructor(left: Timeline, right: Timeline, isOneThread: boolean) {
    this.#sides = { left: sideOf(left, right), right: sideOf(right, left) };
    const [one, other] = [this.#sides.left, this.#sides.right];
    this.#isRelated = isOneThread || one.fork !== undefined || other.fork !== undefined;
    const isContinued = one.isContinuation || other.isContinuation;
    this.#isByNumber =
      isContinued && one.firstStep <= other.lastStep && other.firstStep <= one.lastStep;
  }

  roots(): Node[] {
    const { left, right } = this.#sides;
    return this.#couples(left.of(ROOT), right.of(ROOT), false);
  }

  #couples(left: readonly Row[], right: readonly Row[], isTakenOver: boolean): Node[] {
    const passes = [
      (name: SideName) => (row: Row) => this.#key(row, name),
      // Only tasks that have finished have an index. One without may be any of its node.
      (name: SideName) => (row: Row) => taskKey(row, name === "left"),
      (name: SideName) => (row: Row) => taskKey(row, name === "right"),
    ];
    return merged(left, right, passes).map(([one, other]) => {
      if (one !== undefined && other !== undefined) return this.#both(one, other);
      const row = one ?? other;
      if (row === undefined) throw new Error("a pair has a row");
      return this.#alone(row, one === undefined ? "right" : "left", isTakenOver);
    });
  }

  /** Returns what rows of both runs have in common if they belong together. */
  #key(row: Row, name: SideName): string | undefined {
    const { kind, label, number, detail } = row;
    switch (kind) {
      case "step":
        return this.#isByNumber ? `step ${number}` : kind;
      case "task":
        return number === undefined ? undefined : `task ${label} ${number}`;
      case "graph":
        return `graph ${pathlessName(label)}`;
      case "message":
        return `message ${label}`;
      case "change":
        return this.#isMark(row, name) ? `${name} ${label}` : `change ${label} ${detail}`;
      default:
        return `${kind} ${number}`;
    }
  }

  /** Returns true for a change by which one of the runs became a fork of what was before. */
  #isMark({ kind, parent, seq }: Row, name: SideName): boolean {
    const { fork, firstStepSeq } = this.#sides[name];
    const isAlone = fork !== undefined && this.#sides[OTHER[name]].fork === undefined;
    return isAlone && kind === "change" && parent === ROOT && seq < firstStepSeq;
  }

  #both(left: Row, right: Row): Node {
    const children = this.#below(left, right);
    const isSame = this.#isSame(left, right) && !children.some(isDifferent);
    return { left, right, relation: isSame ? "same" : "changed", children };
  }

  #below(left: Row, right: Row): Node[] {
    const [lefts, rights] = [this.#sides.left.of(left.id), this.#sides.right.of(right.id)];
    const isTakenOver = TAKEN_OVER.has(left.status) || TAKEN_OVER.has(right.status);
    // A task with one attempt has no row for it.
    if (isRetried(lefts) && !isRetried(rights) && rights.length > 0) {
      return this.#retried(lefts, "left", (below) => [below, rights]);
    }
    if (isRetried(rights) && !isRetried(lefts) && lefts.length > 0) {
      return this.#retried(rights, "right", (below) => [lefts, below]);
    }
    return this.#couples(lefts, rights, isTakenOver);
  }

  /** Aligns the last attempt of one run with the only attempt of the other one. */
  #retried(
    attempts: readonly Row[],
    name: SideName,
    withOther: (below: readonly Row[]) => readonly [readonly Row[], readonly Row[]],
  ): Node[] {
    const earlier = attempts.slice(0, -1).map((row) => this.#alone(row, name, false));
    const last = attempts.at(-1);
    if (last === undefined) return earlier;
    const [lefts, rights] = withOther(this.#sides[name].of(last.id));
    const children = this.#couples(lefts, rights, false);
    const relation = children.some(isDifferent) ? "changed" : "same";
    const rows = { left: undefined, right: undefined, [name]: last };
    return [...earlier, { ...rows, relation, children }];
  }

  #alone(row: Row, name: SideName, isTakenOver: boolean): Node {
    const isCarried = isTakenOver || this.#isCarried(row, name);
    const below = this.#sides[name].of(row.id);
    const children = below.map((child) => this.#alone(child, name, isCarried));
    const rows = { left: undefined, right: undefined, [name]: row };
    return { ...rows, relation: isCarried ? "carried" : name, children };
  }

  /** Returns true for a row before the place at which the other run continued, or of that place. */
  #isCarried(row: Row, name: SideName): boolean {
    const [own, other] = [this.#sides[name], this.#sides[OTHER[name]]];
    if (this.#isMark(row, name)) return true;
    if (own.replaced !== undefined && row.seq < own.replaced.seq) return true;
    if (!this.#isRelated || !this.#isByNumber || row.parent !== ROOT) return false;
    // A fork from the input has the steps of the other run, which alone has the checkpoint of the
    // input before them.
    const isForked = other.fork !== undefined && own.fork === undefined;
    const isFirst = own.firstStep === other.firstStep;
    if (own.firstStep > other.firstStep || (isFirst && !isForked)) return false;
    const begun = stepsOf(own).find(({ number }) => (number ?? 0) >= other.firstStep);
    return row.kind === "step"
      ? (row.number ?? 0) < other.firstStep
      : row.seq < (begun?.seq ?? Number.POSITIVE_INFINITY);
  }

  #isSame(left: Row, right: Row): boolean {
    if (this.#isReplaced(left, right)) return false;
    // What goes on may still become the same.
    const isSameName = nameOf(left) === nameOf(right);
    if (left.status === "running" || right.status === "running") return isSameName;
    return (
      isSameName &&
      outcomeOf(left) === outcomeOf(right) &&
      left.code === right.code &&
      detailOf(left) === detailOf(right) &&
      hasSameValues(left.call, right.call)
    );
  }

  /** Returns true for the call whose result a fork replaced, perhaps by an equal one. */
  #isReplaced(left: Row, right: Row): boolean {
    const { left: one, right: other } = this.#sides;
    return isCall(left, one.replaced) || isCall(right, other.replaced);
  }
}

function isCall({ kind, seq }: Row, replaced: ForkedCall | undefined): boolean {
  return kind === "call" && seq === replaced?.seq;
}

function outcomeOf({ status }: Row): RowStatus {
  return ALIKE[status] ?? status;
}

/** Returns the key of a task by its node alone; `undefined` if only tasks without an index count. */
function taskKey({ kind, label, number }: Row, isUnknown: boolean): string | undefined {
  return kind !== "task" || (isUnknown && number !== undefined) ? undefined : label;
}

/** Returns the text of a row. A call that was replayed has it among its facts only. */
function detailOf({ call, code, detail }: Row): string {
  return call !== undefined && code === undefined ? call.summary : detail;
}

/** Returns what two rows of the same name share. Ids are derived from tasks, and differ. */
function nameOf({ kind, label }: Row): string {
  if (kind === "interrupt") return "";
  return kind === "graph" ? pathlessName(label) : label;
}

/** Returns true unless the requests or the results of two calls are known to differ. */
function hasSameValues(left: CallFacts | undefined, right: CallFacts | undefined): boolean {
  if (left === undefined || right === undefined) return true;
  // Two runs have other times. Even the sizes of these as JSON differ, with their digits.
  if (isTimeConversion(left.function)) return true;
  return (
    isEqualIfKnown(left.requestDigest, right.requestDigest) &&
    (isVolatileCall(left.function) || isEqualIfKnown(left.resultDigest, right.resultDigest))
  );
}

function isEqualIfKnown<T>(one: T | undefined, other: T | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

function isRetried(rows: readonly Row[]): boolean {
  return rows.some(({ kind }) => kind === "attempt");
}

function isDifferent({ relation }: Pick<Node, "relation">): boolean {
  return relation !== "same" && relation !== "carried";
}

/** Returns the innermost pair at which the runs part. */
function partingOf(nodes: readonly Node[]): Node | undefined {
  const first = nodes.find(isDifferent);
  if (first?.relation !== "changed") return first;
  return partingOf(first.children) ?? first;
}

function flattened(roots: readonly Node[]): Alignment {
  const parting = partingOf(roots);
  const pairs: Pair[] = [];
  let common: number | undefined;
  const add = (nodes: readonly Node[], depth: number, parent: number) => {
    for (const node of nodes) {
      const { left, right, relation, children } = node;
      const index = pairs.length;
      if (node === parting) common = index;
      pairs.push({ id: idOf(left, right), depth, left, right, relation, parent });
      add(children, depth + 1, index);
    }
  };
  add(roots, 0, -1);
  return { pairs, common: common ?? pairs.length };
}
