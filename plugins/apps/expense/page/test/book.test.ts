// Sums of a day.
import { expect, test } from "vitest";
import { sumsOf } from "../src/book.ts";
import type { Booking } from "../src/schema.d.ts";

function row(
  id: string,
  date: string,
  amount: number | null,
  more: Partial<Booking> = {},
): Booking {
  return { id, date, dateMs: 0, remark: "", category: "餐饮", amount, kind: "consume", ...more };
}

test("sums are exact, and an empty cell counts as a booking without an amount", () => {
  const rows = [
    row("a", "2025-01-14", 0.1),
    row("b", "2025-01-14", 0.2),
    row("c", "2025-01-14", null, { category: "交通" }),
    row("d", "2025-01-14", 8000, { category: "工资", kind: "income" }),
  ];
  expect(sumsOf(rows)).toEqual({
    consume: 0.3,
    income: 8000,
    count: 4,
    categories: [
      { category: "工资", kind: "income", amount: 8000, count: 1 },
      { category: "餐饮", kind: "consume", amount: 0.3, count: 2 },
      { category: "交通", kind: "consume", amount: 0, count: 1 },
    ],
  });
  expect(sumsOf([])).toEqual({ consume: 0, income: 0, count: 0, categories: [] });
});
