// @vitest-environment node
// The closed rows of a timeline in an address.
import { expect, test } from "vitest";
import { ClosedRows, closedRows } from "../../src/run/closed-rows.ts";

const closed = (rows: ClosedRows, ids: readonly string[]) => ids.filter((id) => rows.has(id));

test("rows are closed and opened one by one, or all at once", () => {
  const ids = ["n0", "n1", "n12"];
  const some = ClosedRows.NONE.toggled("n12").toggled("n0");
  expect([some.text, closed(some, ids)]).toEqual(["12.0", ["n0", "n12"]]);
  expect(some.toggled("n12").toggled("n0").text).toBeUndefined();
  const others = ClosedRows.ALL.toggled("n1");
  expect([others.text, closed(others, ids)]).toEqual(["all.1", ["n0", "n12"]]);
  expect(others.toggled("n1").text).toBe("all");
});

test("an address has the closed rows", () => {
  for (const text of ["0", "12.0", "all", "all.1"]) {
    expect(closedRows(text)).toBe(text);
    expect(ClosedRows.of(text).text).toBe(text);
  }
  expect(ClosedRows.of(undefined).text).toBeUndefined();
  for (const text of ["", "n1", "1.", "1.all", "-1", "1".repeat(10), "1.".repeat(101) + 1]) {
    expect(closedRows(text)).toBeUndefined();
  }
});

test("an address is short whatever a user closes", () => {
  let rows = ClosedRows.ALL;
  for (let number = 0; number < 1_000; number += 1) rows = rows.toggled(`n${number}`);
  expect(closedRows(rows.text ?? "")).toBe(rows.text);
  expect(closed(rows, ["n0", "n899", "n900", "n999"])).toEqual(["n0", "n899"]);
});
