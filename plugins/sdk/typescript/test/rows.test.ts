// Rows of databases as types, and lists that fit into a response.

import { describe, expect, test } from "vitest";
import { sql } from "wattle-plugin";
import * as z from "zod";
import { thrown } from "./thrown.ts";

const Place = z.object({ lat: z.number() });

describe("rows as types", () => {
  const rows = (value: sql.Value) => new sql.Rows(["it", "unused"], [[value, null]]);

  test.each<[sql.Value, z.ZodType, unknown]>([
    [true, z.boolean(), true],
    [0, z.boolean(), false],
    [7, z.int(), 7],
    [new sql.Other("7"), z.int(), 7],
    [new sql.Real(2), z.number(), 2],
    [new sql.Other("1.50"), z.number(), 1.5],
    ["lamp", z.string(), "lamp"],
    [new sql.Other("2025-01-15"), z.string(), "2025-01-15"],
    ["OPEN", z.enum(["OPEN", "CLOSED"]), "OPEN"],
    [new sql.JsonValue("CLOSED"), z.enum(["OPEN", "CLOSED"]), "CLOSED"],
    [null, z.string().nullable(), null],
    [new sql.JsonValue(null), z.string().nullable(), null],
    ["a", z.string().nullable(), "a"],
    [Uint8Array.of(1, 2), z.instanceof(Uint8Array), Uint8Array.of(1, 2)],
    [new sql.JsonValue([1, 2]), z.array(z.int()), [1, 2]],
    ["[1, 2]", z.tuple([z.int(), z.int()]), [1, 2]],
    ['{"lat": 35.5}', Place, { lat: 35.5 }],
    // Only the type decides, so that text such as `12` stays text.
    ["12", z.unknown(), "12"],
  ])("a value of both databases fits a type (%#)", (value, type, expected) => {
    expect(
      rows(value)
        .one()
        .read(z.object({ it: type })),
    ).toEqual({ it: expected });
  });

  test("fields convert independently of one another", () => {
    const Item = z.object({ id: z.int(), is_sold: z.boolean(), labels: z.array(z.string()) });
    const columns = ["id", "is_sold", "labels"];
    const found = new sql.Rows(columns, [[1, 1, '["old"]']]).readAll(Item.transform((it) => [it]));
    expect(found).toEqual([[{ id: 1, is_sold: true, labels: ["old"] }]]);
  });

  test.each<[sql.Value, z.ZodType, string]>([
    ["x", z.int(), "column `it`: Invalid input: expected number, received string"],
    ["[1]", z.int(), "column `it`: Invalid input: expected number, received string"],
    ['{"lat": "x"}', Place, "column `it`: Invalid input: expected object, received string"],
    [
      new sql.JsonValue({ lat: "x" }),
      Place,
      "column `it` at `lat`: Invalid input: expected number, received string",
    ],
    [-1, z.int().min(0), "column `it`: Too small: expected number to be >=0"],
  ])("errors name the column (%#)", (value, type, message) => {
    const failure = thrown(() => rows(value).readFirst(z.object({ it: type })));
    expect(failure.code).toBe("invalid");
    expect(failure.message).toBe(`read a row: ${message}`);
  });

  test("a field needs a column", () => {
    const read = () => new sql.Rows([], [[]]).readAll(z.object({ it: z.int() }));
    expect(thrown(read).message).toBe("read a row: missing field `it`");
  });

  test("a rounded number is not read", () => {
    const rounded = rows(new sql.Inexact(2 ** 60));
    for (const type of [z.int(), z.unknown()]) {
      const failure = thrown(() => rounded.one().read(z.object({ it: type })));
      expect(failure.message).toContain("column `it` is an integer beyond 2^53");
    }
    expect(rounded.one().read(z.object({ unused: z.null() }))).toEqual({ unused: null });
  });

  test("all rows or the first one are read", () => {
    const One = z.object({ it: z.string() });
    const two = new sql.Rows(["it"], [["a"], ["b"]]);
    expect(two.readAll(One)).toEqual([{ it: "a" }, { it: "b" }]);
    expect(two.readFirst(One)).toEqual({ it: "a" });
    expect(new sql.Rows().readFirst(One)).toBeUndefined();
  });
});

describe("lists that fit into a response", () => {
  const Entry = z.object({ n: z.int() });
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  const rows = (ns: number[], truncated = false) => {
    return new sql.Rows(
      ["n"],
      ns.map((n) => [n]),
      truncated,
    );
  };

  test("a truncated result is not the whole one", () => {
    expect(rows([1]).whole().length).toBe(1);
    expect(thrown(() => rows([1], true).whole()).code).toBe("limit");
  });

  // An item takes seven bytes, and its comma one.
  test.each<[count: number, truncated: boolean, limit: number, budget: number, length: number]>([
    [0, false, 3, 100, 0],
    [3, false, 3, 100, 3],
    [3, false, 3, 24, 3],
    [1, false, 3, 0, 1],
  ])("the last page ends with the list: %j", (count, truncated, limit, budget, length) => {
    const page = rows(numbers(count), truncated).page(Entry, limit, budget);
    expect([page.items.length, page.hasMore]).toEqual([length, false]);
    expect(page.nextCursor((last) => last.n)).toBeUndefined();
  });

  test.each<[count: number, truncated: boolean, limit: number, budget: number, length: number]>([
    [4, false, 3, 100, 3],
    [2, true, 3, 100, 2],
    [3, false, 3, 23, 2],
    // A page has an item, however large.
    [3, false, 3, 0, 1],
  ])("another page ends at its limits: %j", (count, truncated, limit, budget, length) => {
    const page = rows(numbers(count), truncated).page(Entry, limit, budget);
    expect([page.items.length, page.hasMore]).toEqual([length, true]);
    expect(page.nextCursor((last) => last.n)).toBe(length);
  });

  test("a result that is truncated before its first row is no page", () => {
    expect(thrown(() => rows([], true).page(Entry, 3, 100)).code).toBe("limit");
  });

  test("characters count by their bytes", () => {
    const texts = new sql.Rows(["t"], [["é東🍜\ud800"], ["x"]]);
    const Text = z.object({ t: z.string() });
    // A lone surrogate is written as an escape.
    const bytes = '{"t":""},'.length + 2 + 3 + 4 + 6;
    const page = (budget: number) => texts.page(Text, 2, budget).items.length;
    expect([page(bytes + 9), page(bytes + 10)]).toEqual([1, 2]);
  });

  test.each([
    [3, false, 100, [1, 2, 3], false, 76],
    [3, false, 17, [2, 3], true, 1],
    [3, false, 7, [], true, 7],
    [1, true, 100, [1], true, 92],
  ])(
    "the newest rows are in order within the budget (%#)",
    (count, cut, bytes, ns, truncated, left) => {
      const budget = { bytes };
      const newest = rows(numbers(count).reverse(), cut).newest(Entry, budget);
      expect(newest).toEqual({ items: ns.map((n) => ({ n })), truncated });
      expect(budget.bytes).toBe(left);
    },
  );
});
