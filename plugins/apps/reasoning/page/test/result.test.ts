// Formats of results, of the trail and of the URL.
import { expect, test } from "vitest";
import type { TraceEvent } from "../src/api.ts";
import { sessionIn, withSession } from "../src/place.ts";
import { columnsOf, countOf, factsOf, shown } from "../src/result.ts";
import { trailRows } from "../src/trail.ts";

test("columns have the names of attributes, and columns of numbers are marked", () => {
  const result = {
    candidate_attributes: [{ code: "amount", name: "订单金额" }],
    data_execution: { labels: { no: "编号" } },
  };
  const rows = [
    { amount: 5, no: "A" },
    { amount: 7, note: null },
  ];
  expect(columnsOf(rows, result)).toEqual([
    { key: "amount", header: "订单金额", isNumber: true },
    { key: "no", header: "编号", isNumber: false },
    { key: "note", header: "note", isNumber: false },
  ]);
});

test("missing values are dashes, and documents are JSON", () => {
  expect([null, undefined, "", 0, false, { a: 1 }].map(shown)).toEqual([
    "—",
    "—",
    "—",
    "0",
    "false",
    '{"a":1}',
  ]);
});

test("counts have the shown and the total number of rows", () => {
  expect(countOf(0, 0)).toBe("没有符合条件的数据。");
  expect(countOf(3, 3)).toBe("显示 3 行");
  expect(countOf(20, 120)).toBe("共 120 行，显示 20 行");
});

test("missing facts are omitted", () => {
  expect(factsOf({ data_execution_mode: "query", selected_ontology: { name: "客户" } })).toEqual([
    ["业务对象", "客户"],
    ["执行方式", "明细查询"],
  ]);
});

test("S1-71: a response has the name of its request", () => {
  const event = (seq: number, payload: TraceEvent["payload"]) => ({
    id: seq,
    seq,
    turn_id: null,
    step: "llm",
    event_type: "x",
    created_at: "",
    payload,
  });
  const rows = trailRows([
    event(1, { call_id: "a", purpose: "reasoning_plan" }),
    event(2, { call_id: "a", duration_ms: 7, error: { code: "llm", message: "down" } }),
  ]);
  expect(rows.map(({ method, error }) => [method, error])).toEqual([
    ["reasoning_plan", ""],
    ["reasoning_plan · 7 ms", "llm：down"],
  ]);
});

test("the URL contains the session", () => {
  expect(sessionIn("#session=a%2Fb")).toBe("a/b");
  expect([sessionIn(""), sessionIn("#session=")]).toEqual([null, null]);
  expect(withSession("a/b")).toMatch(/#session=a%2Fb$/);
  expect(withSession(null)).not.toContain("#");
});
