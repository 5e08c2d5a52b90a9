// Times of filters in the zone of the browser.
import { afterEach, expect, test, vi } from "vitest";
import { toLocal, toMilliseconds } from "../../../src/part/filters/local-time.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

test("a local time is milliseconds in the zone of the browser", () => {
  vi.stubEnv("TZ", "Asia/Shanghai");
  expect(toMilliseconds("2025-01-15T10:30")).toBe("1736908200000");
  expect(toLocal("1736908200000")).toBe("2025-01-15T10:30");
  for (const local of ["2025-01-15T10:30:05", "2025-01-15T10:30:05.007", "1970-01-01T08:00"]) {
    expect(toLocal(toMilliseconds(local) ?? "")).toBe(local);
  }
  for (const local of ["", "soon", "1970-01-01T07:59", "10000-01-01T00:00"]) {
    expect(toMilliseconds(local)).toBeUndefined();
  }
});
