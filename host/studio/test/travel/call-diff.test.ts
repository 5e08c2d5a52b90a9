// What differs between two host calls of a comparison.
import { expect, test } from "vitest";
import type { LogEvent } from "../../src/api/log.ts";
import { callDiff } from "../../src/travel/call-diff.ts";

const called = (more: object): LogEvent => ({
  seq: 7,
  at_ms: 0,
  run: "r1",
  type: "called",
  function: "http.send",
  digest: "1",
  request: { url: "https://example.com/", body: "a" },
  result: { Ok: { status: 200 } },
  ...more,
});

const pathsOf = (more: object) => {
  const diff = callDiff(called({}), called(more));
  return [diff?.request, diff?.result].map((part) => part?.changes.map(({ path }) => path));
};

test("requests and results are compared value by value", () => {
  expect(pathsOf({})).toEqual([[], []]);
  const request = { url: "https://example.com/", body: "b" };
  expect(pathsOf({ request, result: { Ok: { status: 201 } } })).toEqual([[["body"]], [["status"]]]);
});

test("a failure is compared with a failure, and not with an output", () => {
  const failed = (message: string) => called({ result: { Err: { code: "timeout", message } } });
  expect(callDiff(called({}), failed("slow"))?.result).toBeUndefined();
  expect(callDiff(failed("slow"), failed("slower"))?.result?.changes).toMatchObject([
    { path: ["message"], kind: "changed" },
  ]);
});

test("requests of which the log has the same beginning differ nevertheless", () => {
  expect(callDiff(called({}), called({ digest: "2" }))?.isUnseen).toBe(true);
  expect(callDiff(called({}), called({ digest: "2", request: {} }))?.isUnseen).toBe(false);
});

test("ids of completions differ in each run, and count nothing", () => {
  const answer = (id: string, name: string) => called({ function: name, result: { Ok: { id } } });
  const changes = (name: string) => callDiff(answer("a", name), answer("b", name))?.result?.changes;
  expect(changes("llm.complete")).toEqual([]);
  expect(changes("llm.stream")).toEqual([]);
  expect(changes("http.send")).toHaveLength(1);
});

test("ids of tool calls differ in each run, and count nothing", () => {
  const answer = (call: object) => {
    const parts = [{ text: "so" }, { tool_call: { name: "find", arguments: {}, ...call } }];
    return called({ function: "llm.complete", result: { Ok: { parts } } });
  };
  const changes = (call: object) => callDiff(answer({ id: "a" }), answer(call))?.result?.changes;
  expect(changes({ id: "b" })).toEqual([]);
  expect(changes({ id: "b", name: "look" })).toMatchObject([
    { path: ["parts", 1, "tool_call", "name"], kind: "changed" },
  ]);
});

test("a call that has not returned is not compared", () => {
  expect(callDiff(called({}), called({ type: "call_started" }))).toBeUndefined();
});
