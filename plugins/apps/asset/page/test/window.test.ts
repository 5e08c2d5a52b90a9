// Virtual scrolling of a long table.
import { expect, it } from "vitest";
import { rowsInSight } from "../src/confirm/window.ts";

it("renders the visible rows and a few around them", () => {
  const rows = rowsInSight(4400, 440, 44, 10_000, undefined);
  expect(rows[0]).toBe(92);
  expect(rows.at(-1)).toBe(118);
});

it("keeps the row with the focus", () => {
  expect(rowsInSight(4400, 440, 44, 200, 3)[0]).toBe(3);
  expect(rowsInSight(0, 440, 44, 200, 199).at(-1)).toBe(199);
  expect(rowsInSight(0, 440, 44, 5, 9)).toEqual([0, 1, 2, 3, 4]);
  expect(rowsInSight(0, 440, 44, 0, undefined)).toEqual([]);
});
