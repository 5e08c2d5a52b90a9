// @vitest-environment node
// The fold of the events of a run: what is shown below what, and in which state.
import { describe, expect, test } from "vitest";
import type { EventOutline } from "../../src/api/log.ts";
import { nodeKey } from "../../src/run/node-states.ts";
import {
  called,
  callStarted,
  checkpointed,
  type Kind,
  log,
  logFrom,
  manyCalls,
  outline,
  runEnded,
  runStarted,
  streamed,
  taskFailed,
  taskFinished,
  taskStarted,
  text,
  timelineOf,
} from "./log.ts";

test("a run is a tree of supersteps, tasks and calls", () => {
  const timeline = timelineOf(
    log(
      runStarted(),
      checkpointed(0, { source: "input", next: ["node-t1"] }),
      taskStarted("t1"),
      callStarted("t1", 0),
      called("t1", 0, { function: "llm.complete", tokens: { input: 12, output: 3 } }),
      called("t1", 1),
      { type: "progress", task: "t1", node: "node-t1", message: "half" },
      taskFinished("t1"),
      checkpointed(1, { next: ["node-t2"] }),
      taskStarted("t2", 1),
      taskFinished("t2"),
      checkpointed(2),
      runEnded(),
    ),
  );
  expect(outline(timeline)).toEqual([
    "change checkpointed done",
    "step 0 done",
    "  task node-t1 done",
    "    call llm.complete done",
    "    call http.send done",
    "    message progress done",
    "step 1 done",
    "  task node-t2 done",
  ]);
  expect(timeline.totals()).toMatchObject({ calls: 2, modelCalls: 1, input: 12, output: 3 });
  expect(timeline.facts).toMatchObject({ graph: "chat", reason: "input", status: "completed" });
});

test("the checkpoint of a run is the newest one of its root graph", () => {
  const checkpointAfter = (...kinds: readonly Kind[]) =>
    timelineOf(log(runStarted(), ...kinds)).facts.checkpoint;
  expect(checkpointAfter()).toBeUndefined();
  const made = [checkpointed(1), checkpointed(2), checkpointed(8, { namespace: "child" })];
  expect(checkpointAfter(...made)).toBe(3);
  expect(checkpointAfter(...made, { type: "reopened", to: 2, interrupts: [] })).toBe(2);
});

test("the calls of a task have the checkpoint at which it started", () => {
  const events = log(
    runStarted(),
    taskStarted("t0"),
    called("t0", 0),
    checkpointed(4),
    taskStarted("t1", 5),
    called("t1", 0),
  );
  const bases = () =>
    timelineOf(events)
      .rows()
      .flatMap(({ call }) => (call ? call.start : []));
  expect(bases()).toEqual([{ base: undefined }, { base: 5 }]);
  events.push(...logFrom(7, taskFinished("t0", { base: 3 })));
  expect(bases()).toEqual([{ base: 3 }, { base: 5 }]);
});

test("the cost of a run is that of its priced calls", () => {
  const tokens = { input: 12, output: 3 };
  const unpriced = log(runStarted(), taskStarted("t1"), called("t1", 0, { tokens }));
  expect(timelineOf(unpriced).totals().cost).toBeUndefined();
  const priced = logFrom(
    4,
    called("t1", 1, { function: "llm.complete", tokens, cost: 0.5 }),
    called("t1", 2, { function: "llm.complete", tokens, cost: 0.25 }),
    called("t1", 3),
  );
  const timeline = timelineOf([...unpriced, ...priced]);
  expect(timeline.totals().cost).toBe(0.75);
  const costs = timeline.rows().flatMap(({ call }) => (call ? [call.cost] : []));
  expect(costs).toEqual([undefined, 0.5, 0.25, undefined]);
});

test("an event that is there already changes nothing", () => {
  const events = log(runStarted(), taskStarted("t1"), called("t1", 0), taskFinished("t1"));
  const once = timelineOf(events);
  const twice = timelineOf([...events.slice(0, 3), ...events]);
  expect(twice.rows()).toEqual(once.rows());
  expect(twice.totals()).toEqual(once.totals());
  expect(twice.version).toBe(events.length);
});

test("events of other runs and types that are not known are left out", () => {
  const other = log({ ...taskStarted("t9"), run: "r2" });
  const later = logFrom(2, { type: "other" }, { type: "teleported" as "other" });
  expect(timelineOf([...log(runStarted()), ...other, ...later]).rows()).toEqual([]);
});

test("a retry is an attempt that replays the calls that succeeded", () => {
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      called("t1", 0, { tokens: { input: 5, output: 5 } }),
      called("t1", 1, { ok: false, failure: { code: "unavailable", message: "gone" } }),
      taskFailed("t1"),
      taskStarted("t1", 0, 2),
      called("t1", 1),
      taskFinished("t1"),
    ),
  );
  expect(outline(timeline)).toEqual([
    "step 0 running",
    "  task node-t1 done",
    "    attempt 1 failed",
    "      call http.send done",
    "      call http.send failed",
    "    attempt 2 done",
    "      call http.send replayed",
    "      call http.send done",
  ]);
  const [, , first, , failed, second] = timeline.rows();
  expect([first?.code, first?.detail, failed?.code]).toEqual([
    "unavailable",
    "gone",
    "unavailable",
  ]);
  expect([second?.replayed, timeline.totals().calls, timeline.totals().input]).toEqual([1, 3, 5]);
});

test("what was in progress when the host stopped is lost, and the run goes on", () => {
  const events = log(
    runStarted(),
    taskStarted("t1"),
    called("t1", 0),
    callStarted("t1", 1),
    streamed("t1", 1, text("half of it")),
    runStarted("recovery"),
    taskStarted("t1"),
    callStarted("t1", 1, { again: 1 }),
    streamed("t1", 1, text("all ")),
    streamed("t1", 1, text("of it")),
  );
  const timeline = timelineOf(events);
  expect(outline(timeline)).toEqual([
    "step 0 running",
    "  task node-t1 running",
    "    attempt 1 lost",
    "      call http.send done",
    "      call llm.complete lost",
    "    attempt 1 running",
    "      call http.send replayed",
    "      call llm.complete running",
    "change recovery done",
  ]);
  const texts = timeline.rows().map(({ call }) => call?.text || undefined);
  expect(texts.filter((text) => text !== undefined)).toEqual(["half of it", "all of it"]);
  expect(timeline.facts.recoveries).toBe(1);
  expect(timeline.isOver).toBe(false);
});

test("the graph of a task is below it, at any depth", () => {
  const inner = { namespace: "node-t1:t1" };
  const innermost = { namespace: "node-t1:t1|node-t2:t2" };
  const kept = { namespace: "node-t1:t1|node-t2" };
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      taskStarted("t2", 0, 1, inner),
      taskStarted("t3", 4, 1, innermost),
      { ...called("t3", 0), ...innermost },
      { ...taskFinished("t3"), ...innermost },
      taskStarted("t4", 0, 1, kept),
    ),
  );
  expect(outline(timeline)).toEqual([
    "step 0 running",
    "  task node-t1 running",
    "    step 0 running",
    "      task node-t2 running",
    "        graph node-t1:t1|node-t2:t2 running",
    "          step 4 running",
    "            task node-t3 done",
    "              call http.send done",
    "        graph node-t1:t1|node-t2 running",
    "          step 0 running",
    "            task node-t4 running",
  ]);
  const states = timeline.nodes();
  expect(states.get(nodeKey("", "node-t1"))?.status).toBe("running");
  expect(states.get(nodeKey(innermost.namespace, "node-t3"))).toMatchObject({
    status: "done",
    tasks: 1,
    running: 0,
  });
});

test("a graph of a task that this run has not started has a place", () => {
  const timeline = timelineOf(log({ ...called("t9", 0), namespace: "outer:t8.0.2" }));
  expect(outline(timeline)).toEqual([
    "step 0 running",
    "  task outer running",
    "    step 0 running",
    "      task node-t9 running",
    "        call http.send done",
  ]);
});

test("the calls of a tool are below its call, in the order of their numbers", () => {
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      callStarted("t1", 0, { function: "tools.call", summary: "search", request_bytes: 9 }),
      called("t1", 1, { scope: [0] }),
      called("t1", 0, { scope: [0], function: "llm.complete" }),
      called("t1", 2, { scope: [0, 1], function: "sql.query" }),
      called("t1", 0, { function: "tools.call", summary: "search" }),
    ),
  );
  expect(outline(timeline).slice(2)).toEqual([
    "    call tools.call done",
    "      call llm.complete done",
    "      call http.send done",
    "        call sql.query done",
  ]);
  expect(timeline.rows().filter(({ kind }) => kind === "call").length).toBe(4);
});

test("a tool that was cut replays what it had received, and only that", () => {
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      called("t1", 0, { scope: [3] }),
      called("t1", 3, { function: "tools.call" }),
      called("t1", 0, { scope: [4] }),
      runStarted("recovery"),
      taskStarted("t1"),
      callStarted("t1", 4, { function: "tools.call" }),
    ),
  );
  // The calls within the call 3 are not made again. Those within the call 4 are replayed.
  expect(outline(timeline).slice(7, 11)).toEqual([
    "    attempt 1 running",
    "      call tools.call replayed",
    "      call tools.call running",
    "        call http.send replayed",
  ]);
});

test("a fork carries results over, and executes the rest in the same attempt", () => {
  const timeline = timelineOf(
    log(
      runStarted("fork"),
      { type: "forked", from: 3, call: { task: "t0", call: 1, seq: 8 } },
      checkpointed(2, { source: "fork", next: ["node-t1", "node-t2"] }),
      taskFinished("t2", { cached: true }),
      taskStarted("t1", 2),
      called("t1", 0, { reused: 7, tokens: undefined }),
      called("t1", 1, { function: "llm.complete" }),
      taskStarted("t1", 2),
      called("t1", 2),
      taskFinished("t1"),
      checkpointed(3),
      runEnded(),
    ),
  );
  expect(outline(timeline)).toEqual([
    "change forked done",
    "change checkpointed done",
    "step 2 done",
    "  task node-t2 cached",
    "  task node-t1 done",
    "    call http.send reused",
    "    call llm.complete done",
    "    call http.send done",
  ]);
  expect(timeline.totals()).toMatchObject({ calls: 3, modelCalls: 1 });
});

test("an interrupt is below the tool that raised it, and the run waits", () => {
  const asked = {
    type: "asked",
    interrupt: "i1",
    task: "t1",
    node: "node-t1",
    scope: [0],
    call: 1,
    payload: { bytes: 9, value: { say: "Sure?" } },
  } as const;
  const events = log(
    runStarted(),
    taskStarted("t1"),
    callStarted("t1", 0, { function: "tools.call" }),
    asked,
    runEnded("interrupted"),
  );
  const timeline = timelineOf(events);
  expect(outline(timeline)).toEqual([
    "step 0 asked",
    "  task node-t1 asked",
    "    call tools.call asked",
    "    interrupt i1 asked",
  ]);
  expect(timeline.rows().at(-1)?.detail).toBe('{"say":"Sure?"}');
  const answered = logFrom(6, {
    type: "answered",
    interrupt: "i1",
    task: "t1",
    answer: { bytes: 4, value: true },
    principal: { user: "jane" },
  });
  for (const event of answered) timeline.apply(event);
  expect(outline(timeline).slice(3)).toEqual(["    interrupt i1 done", "change answered done"]);
});

describe("what a model streams", () => {
  const streaming = (...deltas: object[]) =>
    timelineOf(
      log(runStarted(), taskStarted("t1"), callStarted("t1", 0), streamed("t1", 0, ...deltas)),
    );
  const call = (...deltas: object[]) =>
    streaming(...deltas)
      .rows()
      .at(-1)?.call;

  test("is appended, and begins again at a restart", () => {
    const all = call(text("no"), { kind: "restart" }, text("Wat"), text("tles"));
    expect(all?.text).toBe("Wattles");
    expect(call({ kind: "reasoning", text: "hm" }, { kind: "later" })?.reasoning).toBe("hm");
  });

  test("has the tool calls by their index", () => {
    const delta = (index: number, more: object) => ({ kind: "tool_call", index, ...more });
    const asks = call(
      delta(1, { name: "add" }),
      delta(0, { name: "echo", arguments: "{" }),
      delta(1, { arguments: "[1]" }),
      delta(0, { arguments: "}" }),
      delta(4_000_000_000, { name: "far" }),
    )?.asks;
    expect(asks).toEqual([
      { name: "echo", arguments: "{}" },
      { name: "add", arguments: "[1]" },
    ]);
  });

  test("is cut at its beginning if it is very long", () => {
    const kept = call(text("x".repeat(99_999)), text("end"))?.text ?? "";
    expect([kept.length, kept.endsWith("xend")]).toEqual([100_000, true]);
  });
});

test("time is that of the guest, or of the calls that were in progress", () => {
  const startMs = 1_000_000;
  const at = (ms: number, us: number) => ({ started_ms: startMs + ms, duration_us: us });
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      // Two at once, from 30 to 45 and from 40 to 50.
      called("t1", 0, at(30, 15_000)),
      called("t1", 1, at(40, 10_000)),
      // A tool and its only call, from 52 to 56. What was reused took no time.
      called("t1", 0, { ...at(52, 4_000), scope: [2] }),
      called("t1", 2, { ...at(51, 8_000), function: "tools.call" }),
      called("t1", 3, { ...at(60, 5_000), reused: 1 }),
      taskFinished("t1", { duration_us: 50_000 }),
    ),
  );
  expect(timeline.totals()).toMatchObject({ guestUs: 26_000, providerUs: 24_000, storeUs: 0 });
});

test("time in the store is that before calls, and between supersteps", () => {
  const at = (ms: number, us: number, store_us: number) => ({
    started_ms: 1_000_000 + ms,
    duration_us: us,
    store_us,
  });
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      // Two that wait from 27 to 30 and from 29 to 40, and are in progress from 30 to 50.
      called("t1", 0, at(30, 15_000, 3_000)),
      called("t1", 1, at(40, 10_000, 11_000)),
      // A tool that waits from 50 to 51, and its call.
      called("t1", 0, { ...at(52, 4_000, 0), scope: [2] }),
      called("t1", 2, { ...at(51, 8_000, 1_000), function: "tools.call" }),
      called("t1", 3, { ...at(60, 5_000, 2_000), reused: 1 }),
      taskFinished("t1", { duration_us: 50_000 }),
    ),
  );
  const times = { guestUs: 22_000, providerUs: 24_000, storeUs: 14_000 };
  expect(timeline.totals()).toMatchObject(times);
  for (const event of logFrom(9, runEnded("completed", { store_us: 7_000 }))) timeline.apply(event);
  expect(timeline.totals()).toMatchObject({ ...times, storeUs: 21_000 });
});

test("a superstep, a task and an attempt have the sums of what was executed in them", () => {
  const asked = { function: "llm.complete", tokens: { input: 5, output: 2 }, cost: 0.25 };
  const at = { started_ms: 1_000_055, duration_us: 4_000 };
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      called("t1", 0, { ...asked, started_ms: 1_000_020 }),
      taskFailed("t1"),
      taskStarted("t1", 0, 2),
      called("t1", 1, { ...asked, ...at, store_us: 1_000 }),
      taskFinished("t1", { duration_us: 20_000 }),
      taskStarted("t2"),
      called("t2", 0, { tokens: { input: 1, output: 0 } }),
      taskFinished("t2", { cached: true }),
      // It has not ended.
      taskStarted("t3"),
    ),
  );
  const sums = (kind: string, label: string, number?: number) => {
    const row = timeline.rows().find((it) => {
      return it.kind === kind && it.label === label && (number ?? it.number) === it.number;
    });
    return row && timeline.sumsOf(row.id);
  };
  // The second attempt replays the call of the first one.
  const second = { input: 5, output: 2, cost: 0.25, guestUs: 15_000, providerUs: 4_000 };
  expect(sums("attempt", "node-t1", 2)).toEqual({ ...second, storeUs: 1_000 });
  const both = { input: 10, output: 4, cost: 0.5, guestUs: 30_000, providerUs: 9_000 };
  expect(sums("task", "node-t1")).toEqual({ ...both, storeUs: 1_000 });
  expect(sums("step", "")).toEqual({ ...both, input: 11, storeUs: 1_000 });
  const { calls, modelCalls, ...totals } = timeline.totals();
  expect([calls, modelCalls, totals]).toEqual([3, 2, sums("step", "")]);
  expect(sums("task", "node-t3")).toMatchObject({ input: 0, cost: undefined, guestUs: 0 });
  expect(timeline.sumsOf("n99")).toBeUndefined();
});

test("rows below a closed one are left out, and an event leads to its row", () => {
  const timeline = timelineOf(
    log(runStarted(), taskStarted("t1"), callStarted("t1", 0), called("t1", 0)),
  );
  const [step, task, call] = timeline.rows();
  expect(timeline.rows(new Set([task?.id ?? ""])).length).toBe(2);
  for (const seq of [3, 4]) expect(timeline.pathTo(seq).at(-1)).toBe(call?.id);
  expect(timeline.pathTo(4)[0]).toBe(step?.id);
  expect(timeline.pathTo(99)).toEqual([]);
});

test("rows that share an event have paths of their own", () => {
  const timeline = timelineOf(
    log(runStarted(), taskStarted("t1"), taskFailed("t1"), taskStarted("t1", 0, 2)),
  );
  const [step, task, first, second] = timeline.rows();
  expect([step?.seq, task?.seq, second?.seq]).toEqual([2, 4, 4]);
  expect([2, 3, 4, 99].map((seq) => timeline.rowOf(seq))).toEqual([
    first?.id,
    first?.id,
    second?.id,
    undefined,
  ]);
  expect(timeline.pathTo(4, task?.id)).toEqual([step?.id, task?.id]);
  expect(timeline.pathTo(4, "n99")).toEqual(timeline.pathTo(4));
});

test("a row that has not changed is the same object", () => {
  const events = log(runStarted(), taskStarted("t1"), called("t1", 0), called("t1", 1));
  const timeline = timelineOf(events);
  const before = timeline.rows();
  timeline.apply(logFrom(5, called("t1", 2))[0] as EventOutline);
  const after = timeline.rows();
  expect(after[2]).toBe(before[2]);
  expect(after[1]).not.toBe(before[1]);
});

test("a failed run leaves nothing running", () => {
  const timeline = timelineOf(
    log(
      runStarted(),
      taskStarted("t1"),
      taskStarted("t2"),
      callStarted("t2", 0),
      taskFailed("t1"),
      runEnded("failed", { failure: { code: "unavailable", message: "gone" } }),
    ),
  );
  expect(outline(timeline)).toEqual([
    "step 0 failed",
    "  task node-t1 failed",
    "  task node-t2 lost",
    "    call llm.complete lost",
  ]);
  expect(timeline.facts.failure).toEqual({ code: "unavailable", message: "gone" });
});

test("a run of 5,000 calls has a row for each", () => {
  expect(timelineOf(manyCalls(5_000)).rows().length).toBe(5_002);
});
