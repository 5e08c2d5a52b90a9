// Rows, and their plots.
import { expect, test } from "vitest";
import { described, naturalPlot } from "../src/result/natural.ts";
import { distinct, isNumeric, numberOf, textOf } from "../src/result/value.ts";

test("decimals and large numbers keep their digits as texts", () => {
  expect(numberOf("12.50")).toBe(12.5);
  expect(numberOf("-3")).toBe(-3);
  for (const text of ["007", "1e5", "", "12 ", "NaN", "+1"]) expect(numberOf(text)).toBeUndefined();
  expect(textOf("9007199254740993")).toBe("9007199254740993");
  expect(textOf(null)).toBe("");
  expect(textOf({ a: 1 })).toBe('{"a":1}');
  expect(isNumeric([{ a: null }, { a: "1.5" }], "a")).toBe(true);
  expect(isNumeric([{ a: null }], "a")).toBe(false);
});

test("equal rows of a list are shown once", () => {
  const rows = [{ a: 1 }, { a: 1 }, { a: 2 }];
  expect(distinct(rows, "detail")).toHaveLength(2);
  expect(distinct(rows, "trend")).toHaveLength(3);
});

test("numbers over time are a line, in the order of time", () => {
  const plot = naturalPlot([
    { month: "2024-02", total_sales: "20.5", order_count: 3 },
    { month: "2024-01", total_sales: "10.0", order_count: null },
  ]);
  expect(plot).toMatchObject({ kind: "time", by: "month" });
  expect(plot?.series).toEqual([
    { name: "total_sales", values: [10, 20.5] },
    { name: "order_count", values: [null, 3] },
  ]);
  expect(described(plot as NonNullable<typeof plot>)).toContain(
    "total_sales 最低 10（2024-01-01），最高 20.5（2024-02-01）",
  );
  const years = [
    { year: "2023", n_count: 1 },
    { year: "2024", n_count: 2 },
  ];
  expect(naturalPlot(years)?.kind).toBe("time");
  expect(naturalPlot(years.map((row) => ({ ...row, year: Number(row.year) })))?.kind).toBe("time");
});

test("numbers by one category are bars", () => {
  const plot = naturalPlot([
    { channel: "官网", avg_amount: 5 },
    { channel: "门店", avg_amount: 7 },
  ]);
  expect(plot).toMatchObject({ kind: "category", x: { names: ["官网", "门店"] } });
});

test("a metric that would be on the axis is only in the table", () => {
  const rows = [
    { city: "a", total: 1_000_000, n_count: 3 },
    { city: "b", total: 2_000_000, n_count: 4 },
  ];
  expect(naturalPlot(rows)?.series.map(({ name }) => name)).toEqual(["total"]);
});

test("other results have no plot", () => {
  const many = Array.from({ length: 41 }, (_, at) => ({ name: `n${at}`, total: at }));
  for (const rows of [
    [],
    [{ n: 1 }],
    [{ n: 1 }, { n: 2 }],
    [
      { name: "a", city: "x", total: 1 },
      { name: "b", city: "y", total: 2 },
    ],
    [
      { city: "a", total: 1 },
      { city: "a", total: 2 },
    ],
    [
      { city: "a", total: 1 },
      { city: null, total: 2 },
    ],
    [
      { city: "a", customer_id: 1 },
      { city: "b", customer_id: 2 },
    ],
    many,
  ]) {
    expect(naturalPlot(rows)).toBeUndefined();
  }
});
