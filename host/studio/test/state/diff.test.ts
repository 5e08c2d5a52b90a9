// The difference of two states.
import { expect, test } from "vitest";
import { diffState } from "../../src/state/diff.ts";

/** Returns the channels with their numbers of changes. */
const counts = (...states: Parameters<typeof diffState>) =>
  diffState(...states).map(({ channel, diff }) => [channel, diff.changes.length]);

test("only written channels are compared", () => {
  const before = { a: 1, b: 1, c: [1] };
  const after = { a: 2, b: 2, c: [1] };
  expect(counts(before, after, ["c", "a"])).toEqual([
    ["a", 1],
    ["c", 0],
  ]);
});

test("a value that appears or disappears is a change, written or not", () => {
  expect(counts({ a: 1, old: 1 }, { a: 1, fresh: 1 }, [])).toEqual([
    ["fresh", 1],
    ["old", 1],
  ]);
});

test("of two checkpoints all channels are compared, and those that differ are shown", () => {
  expect(counts({ a: 1, b: 1 }, { a: 1, b: { c: 1 } })).toEqual([["b", 1]]);
  expect(counts(undefined, { a: 1 })).toEqual([["a", 1]]);
  expect(counts(null, undefined)).toEqual([]);
});

test("a state with very many large values is compared in part", () => {
  const state = (last: string) =>
    Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [
        `c${String(index).padStart(2, "0")}`,
        "x".repeat(500_000) + last,
      ]),
    );
  const kinds = diffState(state("a"), state("b")).map(({ diff }) => diff.changes[0]?.kind);
  expect(kinds.slice(0, 8)).toEqual(Array(8).fill("changed"));
  expect(kinds.slice(8)).toEqual(Array(12).fill("sized"));
});
