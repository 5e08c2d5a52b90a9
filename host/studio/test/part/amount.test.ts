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
  [9_996, "10.0 ms"],
  [99_960, "100 ms"],
  [999_400, "999 ms"],
  [999_600, "1.00 s"],
  [59_940_000, "59.9 s"],
  [59_960_000, "1 min 0 s"],
  [3_599_600_000, "1 h 0 min"],
  [-5_000_000, "-5.00 s"],
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
  const bytes = [0, 1_023, 1_536, 1024 ** 2 - 1, 5 * 1024 ** 2, 2 * 1024 ** 4];
  expect(bytes.map(bytesText)).toEqual([
    "0 B",
    "1023 B",
    "1.5 KiB",
    "1.0 MiB",
    "5.0 MiB",
    "2048.0 GiB",
  ]);
  expect(countText(1_234_567)).toBe("1,234,567");
});
