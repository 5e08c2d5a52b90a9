// Formats of amounts, dates and months.
import { expect, test } from "vitest";
import { dateTime, dayName, monthAfter, monthName, timeOf, yuan } from "../src/format.ts";

const MIDNIGHT = 1_736_784_000_000;

test("amounts have two decimals and grouped digits", () => {
  expect(yuan(8000)).toBe("¥8,000.00");
  expect(yuan(-20.5)).toBe("−¥20.50");
});

test("instants are formatted in the time zone", () => {
  expect(dateTime(MIDNIGHT, "Asia/Shanghai")).toBe("2025-01-14 00:00:00");
  expect(dateTime(MIDNIGHT, "UTC")).toBe("2025-01-13 16:00:00");
  expect(timeOf(MIDNIGHT, "Asia/Shanghai")).toBeUndefined();
  expect(timeOf(MIDNIGHT, "UTC")).toBe("16:00");
});

test("months are added across years", () => {
  expect(["2025-01", "2025-12", "2025-06"].map((it) => monthAfter(it, 1))).toEqual([
    "2025-02",
    "2026-01",
    "2025-07",
  ]);
  expect(monthAfter("2025-01", -1)).toBe("2024-12");
  expect(monthName("2025-01")).toBe("2025年1月");
  expect(dayName("2025-01-14")).toBe("1月14日 周二");
});
