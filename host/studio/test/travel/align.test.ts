// @vitest-environment node
// Which rows of two runs belong together, and where the runs part.
import { expect, test } from "vitest";
import { nameOf } from "../../src/run/names.ts";
import type { Row } from "../../src/run/row.ts";
import type { Timeline } from "../../src/run/timeline.ts";
import { type Alignment, align, fromParting, isApart, type Pair } from "../../src/travel/align.ts";
import {
  called,
  checkpointed,
  type Kind,
  log,
  logFrom,
  manyCalls,
  runEnded,
  runStarted,
  taskFailed,
  taskFinished,
  taskStarted,
  timelineOf,
} from "../run/log.ts";

/** Maximum number of reads of a field for each row. A search in all rows reads hundreds. */
const READS = 100;

const run = (...kinds: readonly Kind[]): Timeline => timelineOf(log(...kinds));

/** A run of a later part of a thread. */
const later = (first: number, ...kinds: readonly Kind[]): Timeline =>
  timelineOf(logFrom(first, ...kinds));

function lineOf({ depth, left, right, relation }: Pair): string {
  const names = [left, right].map((row) => (row === undefined ? "-" : nameOf(row)));
  return `${"  ".repeat(depth)}${names.join(" | ")}: ${relation}`;
}

const lines = ({ pairs }: Alignment): string[] => pairs.map(lineOf);

const parting = ({ pairs, common }: Alignment): string | undefined => {
  const pair = pairs[common];
  return pair && lineOf(pair).trim();
};

/** A call with a result. Different results have the same size. */
const get = (task: string, call: number, result = 200, more: object = {}) =>
  called(task, call, { result_digest: String(result).padStart(64, "0"), ...more });

const failed = { ok: false, failure: { code: "unavailable", message: "gone" } };

/** The run of two supersteps whose last call fails. */
const broken = () =>
  run(
    runStarted(),
    checkpointed(0, { source: "input", next: ["node-t1"] }),
    taskStarted("t1"),
    get("t1", 0),
    taskFinished("t1"),
    checkpointed(1, { next: ["node-t2"] }),
    taskStarted("t2", 1),
    get("t2", 0),
    get("t2", 1, 200, failed),
    taskFailed("t2"),
    runEnded("failed"),
  );

/** The sequence number of the call that fails. */
const BROKEN_CALL = 9;

const forked = (seq: number, more: object = {}): Kind => ({
  type: "forked",
  from: 2,
  call: { task: "t2", call: 1, seq, ...more },
});

const forkMade = (step: number): Kind => checkpointed(step, { source: "fork", changed: [] });

/** A fork of that run, in which the call returns. Tasks have other ids there. */
const mended = (seq = BROKEN_CALL) =>
  later(
    12,
    runStarted("fork"),
    forked(seq),
    forkMade(1),
    { ...taskStarted("f2", 1), node: "node-t2" },
    { ...get("f2", 0, 200, { reused: 8 }), node: "node-t2" },
    { ...get("f2", 1), node: "node-t2" },
    { ...taskFinished("f2"), node: "node-t2" },
    checkpointed(2, { next: ["node-t3"] }),
    taskStarted("t3", 2),
    taskFinished("t3"),
    checkpointed(3),
    runEnded(),
  );

test("two runs that did the same do not part", () => {
  const result = align(broken(), broken());
  expect(result.common).toBe(result.pairs.length);
  expect(new Set(result.pairs.map(({ relation }) => relation))).toEqual(new Set(["same"]));
  expect(fromParting(result)).toBe(result.pairs);
});

test("a fork parts at the call whose result it replaced, and has taken over what was before", () => {
  const result = align(broken(), mended());
  expect(lines(result)).toEqual([
    "Checkpoint | -: carried",
    "Superstep 0 | -: carried",
    "  node-t1 | -: carried",
    "    http.send | -: carried",
    "- | Fork: carried",
    "- | Checkpoint: carried",
    "Superstep 1 | Superstep 1: changed",
    "  node-t2 | node-t2: changed",
    "    http.send | http.send: same",
    "    http.send | http.send: changed",
    "- | Superstep 2: right",
    "  - | node-t3: right",
  ]);
  expect(result.common).toBe(9);
  expect(fromParting(result).map(lineOf)).toEqual([
    "Superstep 1 | Superstep 1: changed",
    "  node-t2 | node-t2: changed",
    "    http.send | http.send: changed",
    "- | Superstep 2: right",
    "  - | node-t3: right",
  ]);
});

test("the fork may be on the left", () => {
  const result = align(mended(), broken());
  expect(lines(result)[1]).toBe("- | Superstep 0: carried");
  expect(lines(result).at(-1)).toBe("  node-t3 | -: left");
  expect(lines(result).slice(4, 6)).toEqual(["Fork | -: carried", "Checkpoint | -: carried"]);
  expect(parting(result)).toBe("http.send | http.send: changed");
});

test("a result that was replaced by an equal one differs", () => {
  const origin = run(
    runStarted(),
    taskStarted("t1"),
    get("t1", 0),
    get("t1", 1),
    taskFinished("t1"),
    checkpointed(1),
    runEnded(),
  );
  const fork = (seq: number, task = "t1") =>
    later(
      8,
      runStarted("fork"),
      { type: "forked", from: 1, call: { task, call: 0, seq } },
      forkMade(0),
      taskStarted("t1"),
      get("t1", 0),
      get("t1", 1),
      taskFinished("t1"),
      checkpointed(1),
      runEnded(),
    );
  const result = align(origin, fork(3));
  expect(parting(result)).toBe("http.send | http.send: changed");
  expect(lines(result).slice(-2)).toEqual([
    "    http.send | http.send: changed",
    "    http.send | http.send: same",
  ]);
  // The event of this number is another call.
  expect(align(origin, fork(4)).common).toBe(result.pairs.length);
  // The event of this number is in another thread.
  expect(align(origin, fork(3, "x1")).common).toBe(result.pairs.length);
});

test("two forks of one call part at it", () => {
  const other = later(
    12,
    runStarted("fork"),
    forked(BROKEN_CALL),
    forkMade(1),
    { ...taskStarted("g2", 1), node: "node-t2" },
    { ...get("g2", 0, 200, { reused: 8 }), node: "node-t2" },
    { ...get("g2", 1, 300), node: "node-t2" },
    { ...taskFinished("g2"), node: "node-t2" },
    checkpointed(2),
    runEnded(),
  );
  const result = align(mended(), other);
  expect(lines(result).slice(0, 5)).toEqual([
    "Fork | Fork: same",
    "Checkpoint | Checkpoint: same",
    "Superstep 1 | Superstep 1: changed",
    "  node-t2 | node-t2: changed",
    "    http.send | http.send: same",
  ]);
  expect(parting(result)).toBe("http.send | http.send: changed");
});

test("a fork from a checkpoint parts where it does something else", () => {
  const fork = later(
    12,
    runStarted("fork"),
    { type: "forked", from: 2 },
    forkMade(1),
    { ...taskStarted("f2", 1), node: "node-t2" },
    { ...get("f2", 0), node: "node-t2" },
    { ...get("f2", 1, 250), node: "node-t2" },
    { ...taskFinished("f2"), node: "node-t2" },
    checkpointed(2),
    runEnded(),
  );
  const result = align(broken(), fork);
  expect(lines(result).slice(0, 2)).toEqual([
    "Checkpoint | -: carried",
    "Superstep 0 | -: carried",
  ]);
  expect(parting(result)).toBe("http.send | http.send: changed");
});

test("a fork from the checkpoint of the input has taken over the input", () => {
  const fork = later(
    12,
    runStarted("fork"),
    { type: "forked", from: 1 },
    forkMade(0),
    { ...taskStarted("f1"), node: "node-t1" },
    { ...get("f1", 0), node: "node-t1" },
    { ...taskFinished("f1"), node: "node-t1" },
    checkpointed(1, { next: ["node-t2"] }),
    { ...taskStarted("f2", 1), node: "node-t2" },
    { ...get("f2", 0), node: "node-t2" },
    { ...get("f2", 1, 200, failed), node: "node-t2" },
    { ...taskFailed("f2"), node: "node-t2" },
    runEnded("failed"),
  );
  const result = align(broken(), fork);
  expect(lines(result).slice(0, 4)).toEqual([
    "Checkpoint | -: carried",
    "- | Fork: carried",
    "- | Checkpoint: carried",
    "Superstep 0 | Superstep 0: same",
  ]);
  expect(result.common).toBe(result.pairs.length);
  expect(isApart(result)).toBe(false);
  const mirror = align(fork, broken());
  expect(lines(mirror).slice(0, 3)).toEqual([
    "- | Checkpoint: carried",
    "Fork | -: carried",
    "Checkpoint | -: carried",
  ]);
  expect(mirror.common).toBe(mirror.pairs.length);
});

test("attempts before the one that a fork continues are taken over", () => {
  const origin = run(
    runStarted(),
    taskStarted("t1"),
    get("t1", 0),
    get("t1", 1, 200, failed),
    taskFailed("t1"),
    taskStarted("t1", 0, 2),
    get("t1", 1, 200, failed),
    taskFailed("t1", 2),
    runEnded("failed"),
  );
  const fork = later(
    10,
    runStarted("fork"),
    { type: "forked", from: 1, call: { task: "t1", call: 1, seq: 7 } },
    forkMade(0),
    taskStarted("t1", 0, 2),
    get("t1", 0, 200, { reused: 3 }),
    get("t1", 1),
    taskFinished("t1"),
    checkpointed(1),
    runEnded(),
  );
  const result = align(origin, fork);
  expect(lines(result).slice(2)).toEqual([
    "Superstep 0 | Superstep 0: changed",
    "  node-t1 | node-t1: changed",
    "    Attempt 1 | -: carried",
    "      http.send | -: carried",
    "      http.send | -: carried",
    "    Attempt 2 | -: changed",
    "      http.send | http.send: same",
    "      http.send | http.send: changed",
  ]);
  expect(parting(result)).toBe("http.send | http.send: changed");
});

test("a run that had to try again parts at its first attempt from one that had not", () => {
  const once = run(
    runStarted(),
    taskStarted("t1"),
    get("t1", 0),
    taskFinished("t1"),
    checkpointed(1),
    runEnded(),
  );
  const twice = run(
    runStarted(),
    taskStarted("t1"),
    get("t1", 0, 200, failed),
    taskFailed("t1"),
    taskStarted("t1", 0, 2),
    get("t1", 0),
    taskFinished("t1"),
    checkpointed(1),
    runEnded(),
  );
  const result = align(once, twice);
  expect(lines(result)).toEqual([
    "Superstep 0 | Superstep 0: changed",
    "  node-t1 | node-t1: changed",
    "    - | Attempt 1: right",
    "      - | http.send: right",
    "    - | Attempt 2: same",
    "      http.send | http.send: same",
  ]);
  expect(parting(result)).toBe("- | Attempt 1: right");
});

test("parallel tasks of one node belong together by their index", () => {
  const each = (task: string, index: number, more: object = {}): Kind =>
    taskFinished(task, { node: "each", index, ...more });
  const start = (task: string): Kind => ({ ...taskStarted(task), node: "each" });
  const call = (task: string, result: number, more: object = {}): Kind => ({
    ...get(task, 0, result, more),
    node: "each",
  });
  const origin = run(
    runStarted(),
    ...["a0", "a1", "a2"].map(start),
    call("a0", 10),
    call("a1", 11),
    call("a2", 12),
    ...["a0", "a1", "a2"].map((task, index) => each(task, index)),
    checkpointed(1),
    runEnded(),
  );
  const fork = later(
    20,
    runStarted("fork"),
    { type: "forked", from: 1, call: { task: "a1", call: 0, seq: 6 } },
    forkMade(0),
    start("b0"),
    each("b0", 0, { cached: true }),
    start("b2"),
    each("b2", 2, { cached: true }),
    start("b1"),
    call("b1", 99),
    each("b1", 1),
    checkpointed(1),
    runEnded(),
  );
  const result = align(origin, fork);
  expect(lines(result).slice(2)).toEqual([
    "Superstep 0 | Superstep 0: changed",
    "  each | each: same",
    "    http.send | -: carried",
    "  each | each: changed",
    "    http.send | http.send: changed",
    "  each | each: same",
    "    http.send | -: carried",
  ]);
  expect(parting(result)).toBe("http.send | http.send: changed");
});

test("tasks that have no index belong together in their order", () => {
  const start = (task: string): Kind => ({ ...taskStarted(task), node: "each" });
  const origin = run(
    runStarted(),
    start("a0"),
    start("a1"),
    taskFinished("a0", { node: "each", index: 0 }),
    { ...taskFailed("a1"), node: "each" },
    runEnded("failed"),
  );
  const retried = later(
    7,
    runStarted("retry"),
    start("a1"),
    taskFinished("a1", { node: "each", index: 1 }),
    checkpointed(1),
    runEnded(),
  );
  expect(lines(align(origin, retried))).toEqual([
    "Superstep 0 | Superstep 0: changed",
    "  each | -: left",
    "  each | each: changed",
  ]);
});

test("subgraphs belong together by their nodes", () => {
  const within = (task: string): readonly Kind[] =>
    ["", ".3.0"].flatMap((place) => {
      const namespace = `research:${task}${place}`;
      const inner = `${task}${place}-inner`;
      return [
        { ...taskStarted(inner), node: "search", namespace },
        { ...taskFinished(inner), node: "search", namespace },
        checkpointed(1, { namespace }),
      ];
    });
  const one = (task: string) =>
    run(
      runStarted(),
      { ...taskStarted(task), node: "research" },
      ...within(task),
      { ...taskFinished(task), node: "research" },
      checkpointed(1),
      runEnded(),
    );
  const result = align(one("a"), one("b"));
  expect(result.pairs.length).toBe(8);
  expect(result.common).toBe(8);
});

test("runs that begin with an input are aligned from their beginnings on", () => {
  const first = run(
    runStarted(),
    taskStarted("t1"),
    taskFinished("t1"),
    checkpointed(1),
    runEnded(),
  );
  const second = later(
    6,
    runStarted(),
    { ...taskStarted("t9", 4), node: "node-t1" },
    { ...taskFinished("t9"), node: "node-t1" },
    checkpointed(5),
    runEnded(),
  );
  const result = align(first, second);
  expect(lines(result)).toEqual(["Superstep 0 | Superstep 4: same", "  node-t1 | node-t1: same"]);
});

test("a run continues no thread but its own", () => {
  const first = run(
    runStarted(),
    taskStarted("t1"),
    taskFinished("t1"),
    checkpointed(1),
    taskStarted("t2", 1),
    taskFinished("t2"),
    checkpointed(2),
    runEnded(),
  );
  const resumed = later(
    9,
    runStarted("resume"),
    taskStarted("t2", 1),
    taskFinished("t2"),
    checkpointed(2),
    runEnded(),
  );
  const common = ["Superstep 1 | Superstep 1: same", "  node-t2 | node-t2: same"];
  expect(lines(align(first, resumed))).toEqual([
    "Superstep 0 | -: carried",
    "  node-t1 | -: carried",
    ...common,
  ]);
  expect(lines(align(first, resumed, false))).toEqual([
    "Superstep 0 | -: left",
    "  node-t1 | -: left",
    ...common,
  ]);
});

test("runs whose first calls differ have no common beginning", () => {
  const one = (result: number) =>
    run(
      runStarted(),
      checkpointed(0, { source: "input" }),
      taskStarted("t1"),
      get("t1", 0, result),
      taskFinished("t1"),
      checkpointed(1),
      runEnded(),
    );
  const result = align(one(10), one(20));
  expect(parting(result)).toBe("http.send | http.send: changed");
  expect(isApart(result)).toBe(true);
  expect(isApart(align(one(10), one(10)))).toBe(false);
  expect(isApart(align(broken(), mended()))).toBe(false);
  // A run that has not begun yet may still do the same.
  expect(isApart(align(run(), broken()))).toBe(false);
});

test("values differ by their digests, except for times and random numbers", () => {
  const relationOf = (one: object, other: object) => {
    const [left, right] = [one, other].map((more) =>
      run(runStarted(), taskStarted("t1"), called("t1", 0, more), taskFinished("t1"), runEnded()),
    );
    if (left === undefined || right === undefined) throw new Error("both runs are there");
    return align(left, right).pairs.at(-1)?.relation;
  };
  const [one, other] = ["1".repeat(64), "2".repeat(64)];
  expect(relationOf({}, {})).toBe("same");
  expect(relationOf({ digest: one }, { digest: other })).toBe("changed");
  expect(relationOf({ result_digest: one }, { result_digest: other })).toBe("changed");
  for (const name of ["clock.now", "clock.monotonic", "random.bytes"]) {
    const read = { function: name, result_digest: one, result_bytes: 9 };
    expect(relationOf(read, { ...read, result_digest: other, result_bytes: 10 })).toBe("same");
    expect(relationOf(read, { ...read, digest: other })).toBe("changed");
  }
  for (const name of ["clock.to-zone", "clock.from-zone"]) {
    const [early, late] = [one, other].map((digest, index) => {
      const sizes = { request_bytes: 20 + index, result_bytes: 90 + index };
      return { function: name, digest, result_digest: digest, ...sizes };
    });
    expect(relationOf(early ?? {}, late ?? {})).toBe("same");
  }
});

test("what still runs does not differ yet", () => {
  const active = run(runStarted(), taskStarted("t1"), get("t1", 0));
  const ended = run(runStarted(), taskStarted("t1"), get("t1", 0), taskFinished("t1"), runEnded());
  const result = align(active, ended);
  expect(result.common).toBe(result.pairs.length);
});

test("an empty run has nothing in common", () => {
  expect(lines(align(run(), run()))).toEqual([]);
  const result = align(run(), broken());
  expect([result.common, result.pairs[0]?.relation]).toEqual([0, "right"]);
});

test("work for an alignment grows with the number of rows", () => {
  let reads = 0;
  const counted = (row: Row) =>
    new Proxy(row, {
      get(target, key, receiver) {
        reads += 1;
        return Reflect.get(target, key, receiver);
      },
    });
  const [one, other] = [timelineOf(manyCalls(1_000)), timelineOf(manyCalls(1_001))];
  for (const timeline of [one, other]) {
    const rows = timeline.rows().map(counted);
    timeline.rows = () => rows;
  }
  expect(align(one, other).common).toBe(1_002);
  expect(reads / 2_001).toBeLessThan(READS);
});
