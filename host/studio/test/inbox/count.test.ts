// The number of pending questions, also as a text.
import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { countKey, numberText, takeOff, withoutItem } from "../../src/inbox/count.ts";
import type { Conditions } from "../../src/inbox/filter.ts";
import type { InboxItem } from "../../src/inbox/item.ts";

const ITEM: InboxItem = {
  thread: "t1",
  thread_id: "t1",
  app: "notes",
  graph: "main",
  tenant: "acme",
  updated_ms: 1,
  interrupt: { id: "i", node: "ask", payload: null, asked_ms: 1 },
};

test("the number is that of a complete list, or that of the host", () => {
  const count = { total: 70, is_complete: true };
  expect(numberText(50, true, count)).toBe("50");
  expect(numberText(50, false, count)).toBe("70");
  expect(numberText(50, false, undefined)).toBe("50 or more");
  expect(numberText(50, false, { total: 500, is_complete: false })).toBe("500 or more");
});

test("an answer is taken off the numbers of the filters that select its question", () => {
  const client = new QueryClient();
  const access = { tenant_header: "x-tenant" };
  const numbers: readonly (readonly [Conditions, number])[] = [
    [{}, 1],
    [{ app: "notes" }, 1],
    [{ app: "notes", graph: "main", tenant: "acme" }, 1],
    [{ tenant: "*" }, 1],
    [{ app: "other" }, 2],
    [{ graph: "other" }, 2],
    [{ app: "notes", tenant: "other" }, 2],
  ];
  const before = { total: 2, is_complete: true };
  for (const [conditions] of numbers) client.setQueryData(countKey(conditions, access), before);
  takeOff(client, ITEM);
  for (const [conditions, total] of numbers) {
    expect(client.getQueryData(countKey(conditions, access))).toEqual({ ...before, total });
    expect(withoutItem(before, conditions, ITEM).total).toBe(total);
  }
  client.clear();
});

test("no answer makes the number less than zero", () => {
  expect(withoutItem({ total: 0, is_complete: true }, {}, ITEM).total).toBe(0);
});
