// Questions with their steps and answers.
import { expect, test } from "vitest";
import {
  attempt,
  historyOf,
  isStreaming,
  isWaiting,
  newTurn,
  type Turn,
  withEvent,
} from "../src/chat/turns.ts";
import type { Message, Messages, Progress, Result, Row } from "../src/chat/types.ts";

const TIME = "2025-01-15T10:30:45+08:00";

function result(rows: Row[], count = rows.length): Result {
  return {
    session_id: "s",
    intent: "business_query",
    is_followup: false,
    merged_query: "",
    rewritten_query: "",
    skipped: false,
    reason: null,
    final_status: "success",
    reason_code: null,
    summary: "共有 7 个订单。",
    assistant_reply: "",
    download_url: null,
    task: null,
    sql_result: null,
    sql_validate_result: {
      is_valid: true,
      error: null,
      rows: count,
      executed_sql: "",
      empty_result: false,
      zero_metric_result: false,
      result: rows,
    },
    hidden_context_result: null,
    hidden_context_retry_count: 0,
  };
}

function message(id: number, role: Message["role"], content: string, rows?: Row[]): Message {
  const answer = role === "assistant" ? result(rows ?? [{ n: 7 }], 2) : null;
  return { id, role, content, result: answer, created_at: TIME };
}

function event(
  step: Progress["step"],
  status: Progress["status"],
  more: Partial<Progress> = {},
): Progress {
  const message = `${step} ${status}`;
  return { session_id: "s", step, status, message, timestamp: TIME, seq: 1, ...more };
}

/** Returns the history after a read of these messages. */
function read(messages: Message[], pending: Messages["pending"] = null, known?: Turn[]) {
  const before = known && { turns: known, isRunning: false };
  return historyOf({ messages, total: messages.length, pending }, before);
}

const states = (turns: readonly Turn[]) => turns.map(({ question, state }) => [question, state]);

test("a history becomes turns, and its last question may be in progress", () => {
  const messages = [
    message(1, "user", "a"),
    message(2, "assistant", "x"),
    message(3, "user", "b"),
    message(4, "user", "c"),
  ];
  const turns = (pending: Messages["pending"]) => read(messages, pending).turns;
  expect(states(turns({ status: "running" }))).toEqual([
    ["a", "done"],
    ["b", "failed"],
    ["c", "waiting"],
  ]);
  const failed = turns({ status: "failed", step: "task_parse", message: "model down" });
  expect(failed[2]).toMatchObject({ state: "failed", error: "model down" });
  expect(turns(null)[2]).toMatchObject({ state: "failed", error: "这个问题没有得到回答。" });
  expect(turns(null)[0]).toMatchObject({ messageId: 2 });
});

test("a stream becomes steps, and a loop repeats them", () => {
  const failed = {
    sql: "" as const,
    entity_mappings: [],
    sql_fields: [],
    generation_failed: true as const,
    generation_error: "没有可用的语句",
  };
  const stream = [
    event("workflow", "start"),
    event("sql_generation", "start"),
    event("sql_generation", "end", { detail: failed }),
    event("hidden_context", "start"),
    event("hidden_context", "end"),
    event("sql_generation", "start"),
    event("sql_generation", "end"),
    event("result_return", "start"),
  ];
  const turn = stream.reduce(withEvent, newTurn("k", "问题"));
  expect(turn.steps.map(({ name, status }) => `${name} ${status}`)).toEqual([
    "sql_generation failed",
    "hidden_context done",
    "sql_generation done",
    "result_return running",
  ]);
  expect(attempt(turn.steps, 0)).toBe(1);
  expect(attempt(turn.steps, 2)).toBe(2);
  const done = withEvent(turn, event("workflow", "end", { result: result([]) }));
  expect(done).toMatchObject({ state: "done", result: { summary: "共有 7 个订单。" } });
  const broken = withEvent(turn, event("workflow", "error", { message: "已取消" }));
  expect(broken).toMatchObject({ state: "failed", error: "已取消" });
  expect(broken.steps.at(-1)?.status).toBe("failed");
});

test("a reload keeps the steps and the rows that the page has", () => {
  const rows = [{ n: 1 }, { n: 2 }];
  const known: Turn = {
    ...newTurn("k", "a"),
    state: "done",
    steps: [{ name: "sql_generation", status: "done", message: "" }],
    result: result(rows),
  };
  const stored = [message(1, "user", "a"), message(2, "assistant", "x", [{ n: 1 }])];
  const [turn] = read(stored, null, [known]).turns;
  expect(turn).toMatchObject({ key: "k", messageId: 2 });
  expect(turn?.steps).toHaveLength(1);
  expect(turn?.result?.sql_validate_result?.result).toEqual(rows);
});

test("a question that is not stored was not delivered, unless a run has yet to store it", () => {
  const waiting: Turn = { ...newTurn("k", "a"), state: "waiting" };
  const running = read([], { status: "running" }, [waiting]);
  expect([running.turns, isWaiting(running)]).toEqual([[waiting], true]);
  const lost = read([], null, [waiting]);
  expect([lost.turns[0]?.state, isWaiting(lost)]).toEqual(["failed", false]);
  expect(read([], null, [{ ...waiting, state: "done" }]).turns).toEqual([]);
});

test("a read that a question has overtaken changes nothing", () => {
  const asked = newTurn("k", "a");
  const history = read([], null, [asked]);
  expect([history.turns, isStreaming(history), isWaiting(history)]).toEqual([[asked], true, false]);
});
