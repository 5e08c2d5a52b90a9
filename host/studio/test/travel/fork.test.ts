// Where a fork can begin, and what its form begins with.
import { describe, expect, test } from "vitest";
import type { LogEvent } from "../../src/api/log.ts";
import { readRun, runName, runText } from "../../src/router/run-text.ts";
import { isFixed, originOf } from "../../src/travel/fork.ts";

const event = (type: string, more: object): LogEvent => ({
  seq: 7,
  at_ms: 0,
  run: "r1",
  type,
  ...more,
});

/** The functions for which the host has a check of outputs. */
const REPLACEABLE = [
  "llm.complete",
  "llm.stream",
  "llm.generate-images",
  "http.send",
  "sql.query",
  "tools.call",
  "tools.list",
  "clock.now",
  "clock.monotonic",
  "clock.time-zone",
  "clock.to-zone",
  "clock.from-zone",
  "random.bytes",
];

test("a call that returned begins with its result", () => {
  const origin = originOf(
    event("called", { function: "http.send", result: { Ok: { status: 500 } } }),
  );
  expect(origin).toMatchObject({ kind: "call", seq: 7, answer: '{\n  "status": 500\n}' });
});

test("a call that failed begins with the form of a result, and with its failure", () => {
  const failure = { code: "unavailable", message: "gone" };
  const request = { url: "https://example.com/" };
  const more = { function: "http.send", request, result: { Err: failure } };
  const origin = originOf(event("called", more));
  if (origin?.kind !== "call") throw new Error("a fork can begin here");
  expect(JSON.parse(origin.answer)).toMatchObject({ status: 200, url: request.url });
  expect(JSON.parse(origin.failure)).toEqual(failure);
  const list = event("called", { ...more, function: "tools.list" });
  expect(originOf(list)).toMatchObject({ answer: "" });
});

test("a fork begins only at calls whose result the host replaces", () => {
  const call = (name: string) => event("called", { function: name, result: { Ok: 1 } });
  for (const name of REPLACEABLE) {
    expect(originOf(call(name)), name).toMatchObject({ kind: "call" });
    expect(isFixed(call(name)), name).toBe(false);
  }
  for (const name of ["emit.custom", "sql.transaction", "llm.stream.next", "runs.start", "other"]) {
    expect(originOf(call(name)), name).toBeUndefined();
    expect(isFixed(call(name)), name).toBe(true);
  }
  expect(isFixed(event("task_started", {}))).toBe(false);
});

test("what never fails gets no failure", () => {
  const canFail = (name: string) => {
    const origin = originOf(event("called", { function: name, result: { Ok: 1 } }));
    return origin?.kind === "call" && origin.canFail;
  };
  expect(["clock.now", "random.bytes"].map(canFail)).toEqual([false, false]);
  expect(["clock.to-zone", "http.send"].map(canFail)).toEqual([true, true]);
});

test("a result of null is a result", () => {
  expect(originOf(event("called", { function: "http.send", result: { Ok: null } }))).toMatchObject({
    answer: "null",
  });
});

test("a result that is too long is not edited", () => {
  const more = { function: "http.send", result: { Ok: "x".repeat(300_000) } };
  expect(originOf(event("called", more))).toMatchObject({ answer: "", isTooLong: true });
});

test("a fork begins at checkpoints of the root graph", () => {
  const checkpoint = { checkpoint: 3, next: ["agent"] };
  expect(originOf(event("checkpointed", checkpoint))).toEqual({
    kind: "checkpoint",
    checkpoint: 3,
    isEnd: false,
  });
  expect(originOf(event("checkpointed", { ...checkpoint, next: [] }))).toMatchObject({
    isEnd: true,
  });
  expect(originOf(event("checkpointed", { ...checkpoint, namespace: "a:b" }))).toBeUndefined();
  expect(originOf(event("task_started", {}))).toBeUndefined();
});

describe("the text of a run in an address", () => {
  test("has any ids", () => {
    for (const thread of ["t1", "a~b", "100%", "%7E~%25", "case 17/ü"]) {
      const text = runText({ thread, run: "r~1" });
      expect(runName(text)).toBe(text);
      expect(readRun(text)).toEqual({ thread, run: "r~1" });
    }
  });

  test("is refused without both ids", () => {
    for (const text of ["", "~", "t1", "t1~", "~r1", "a~b~c", `t1~${"x".repeat(2_000)}`]) {
      expect(runName(text)).toBeUndefined();
    }
  });
});
