// The number of pending questions as a text.
import { expect, test } from "vitest";
import { numberText, oneLess } from "../../src/inbox/count.ts";

test("the number is that of a complete list, or that of the host", () => {
  const count = { total: 70, is_complete: true };
  expect(numberText(50, true, count)).toBe("50");
  expect(numberText(50, false, count)).toBe("70");
  expect(numberText(50, false, undefined)).toBe("50 or more");
  expect(numberText(50, false, { total: 500, is_complete: false })).toBe("500 or more");
});

test("no answer makes the number less than zero", () => {
  expect(oneLess({ total: 2, is_complete: true }).total).toBe(1);
  expect(oneLess({ total: 0, is_complete: true }).total).toBe(0);
});
