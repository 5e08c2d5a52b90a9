// Amounts as texts.
import { expect, test } from "vitest";
import { bytesText, costText, countText, durationText } from "../../src/part/amount.ts";

test.each([
  [0, "0 µs"],
  [999, "999 µs"],
  [1_210, "1.21 ms"],
  [45_600, "45.6 ms"],
  [456_000, "456 ms"],
  [1_210_000, "1.21 s"],
  [59_000_000, "59.0 s"],
  [61_000_000, "1 min 1 s"],
  [3_660_000_000, "1 h 1 min"],
])("%d microseconds are %s", (us, text) => {
  expect(durationText(us)).toBe(text);
});

test("costs show the digits that matter", () => {
  expect([0, 0.000_361_2, 0.5, 12.345, 1_234.5].map(costText)).toEqual([
    "0",
    "0.000361",
    "0.5",
    "12.35",
    "1,234.5",
  ]);
});

test("bytes and counts have units and groups", () => {
  expect([0, 1_023, 1_536, 5 * 1024 ** 2].map(bytesText)).toEqual([
    "0 B",
    "1023 B",
    "1.5 KiB",
    "5.0 MiB",
  ]);
  expect(countText(1_234_567)).toBe("1,234,567");
});
