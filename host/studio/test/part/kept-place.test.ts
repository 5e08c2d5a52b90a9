// By how many rows a list is scrolled when rows are added and removed.
import { expect, test } from "vitest";
import { shiftAt } from "../../src/part/kept-place.ts";

/** Returns the shift of the rows from an index on; each row is a letter. */
function shift(old: string, rows: string, first: number): number {
  const moved = (row: string) => (rows.includes(row) ? rows.indexOf(row) : undefined);
  return shiftAt([...old], moved, first);
}

test("visible rows move with what is added and removed above them", () => {
  expect(shift("abcdefgh", "abcdefgh", 3)).toBe(0);
  expect(shift("abcdefgh", "xyabcdefgh", 3)).toBe(2);
  expect(shift("abcdefgh", "bcdefgh", 3)).toBe(-1);
  expect(shift("abcdefgh", "abcdefghxy", 3)).toBe(0);
});

test("a visible row that is removed or goes to the top does not move the others", () => {
  expect(shift("abcdefgh", "abcefgh", 3)).toBe(-1);
  expect(shift("abcdefgh", "abcdfgh", 3)).toBe(0);
  expect(shift("abcdefgh", "dabcefgh", 3)).toBe(0);
  expect(shift("abcdefgh", "abcdxyzefgh", 3)).toBe(0);
  expect(shift("abcdefgh", "abcxyz", 3)).toBe(0);
});
