// Entries that are derived from a session.
import { expect, test } from "vitest";
import type { Clarification, Session, Status, Turn } from "../src/api.ts";
import { conversationEntries, entriesOf, saidIn } from "../src/entries.ts";

const turn = (more: Partial<Turn>): Turn => ({
  turn_id: "t1",
  turn_no: 1,
  status: "completed",
  user_input: "查客户",
  result: null,
  error: null,
  ...more,
});

const session = (more: Partial<Session>): Session => ({
  session_id: "s",
  status: "completed",
  metadata: {},
  turn: null,
  turns: [],
  clarification: null,
  clarifications: [],
  truncated: false,
  created_at: "",
  updated_at: "",
  ...more,
});

const asked = (more: Partial<Clarification>): Clarification => ({
  clarification_id: "c1",
  turn_id: "t1",
  reason: "ambiguous",
  question: "哪一个？",
  status: "answered",
  answer: { type: "clarification", text: "客户" },
  ...more,
});

const told = (it: Session) =>
  entriesOf(it).map((entry) => [entry.kind, "text" in entry ? entry.text : undefined]);

test("answers follow their clarifications", () => {
  const it = session({
    turns: [turn({ user_input: "火星\n[clarification] 客户\n[clarification] 区域", result: {} })],
    clarifications: [asked({}), asked({ clarification_id: "c2", answer: { content: " 区域 " } })],
  });
  expect(told(it)).toEqual([
    ["said", "火星"],
    ["asked", undefined],
    ["said", "客户"],
    ["asked", undefined],
    ["said", "区域"],
    ["answer", undefined],
  ]);
  expect(saidIn(it)).toBe(3);
});

test("a notice says that the oldest turns are missing", () => {
  const it = session({ turns: [turn({ turn_no: 7, result: {} })], truncated: true });
  expect(told(it).map(([kind]) => kind)).toEqual(["notice", "said", "answer"]);
  expect(saidIn(it)).toBe(7);
});

test("a text that looks like an answer stays in the question", () => {
  const it = session({ turns: [turn({ user_input: "a\n[clarification] b", result: {} })] });
  expect(told(it)[0]).toEqual(["said", "a\n[clarification] b"]);
});

test("only the newest failure of an open session can be retried", () => {
  const failed = { status: "failed" as const, error: { code: "llm", message: "down" } };
  const turns = [turn(failed), turn({ ...failed, turn_id: "t2" })];
  const cards = (status: Status) =>
    entriesOf(session({ status, turns })).filter(({ kind }) => kind === "failed");
  expect(cards("failed")).toMatchObject([
    { message: "down", code: "9000", mayRetry: false },
    { message: "down", code: "9000", mayRetry: true },
  ]);
  expect(cards("cancelled")).toMatchObject([{ mayRetry: false }, { mayRetry: false }]);
});

test("a turn that is run again is shown without its failure", () => {
  const failed = session({ status: "failed", turns: [turn({ status: "failed" })] });
  const kinds = (isRunning: boolean) => {
    const parts = { before: [], session: failed, pending: undefined, failure: null, isRunning };
    return conversationEntries(parts).map(({ kind }) => kind);
  };
  expect(kinds(false)).toEqual(["said", "failed"]);
  expect(kinds(true)).toEqual(["said"]);
});

test("a turn that never ran can be run, and a cancelled session has a notice", () => {
  const unrun = session({ status: "created", turns: [turn({ status: "created" })] });
  expect(told(unrun).at(-1)?.[0]).toBe("unrun");
  const closed = session({ status: "cancelled", turns: [turn({ status: "cancelled" })] });
  expect(told(closed).at(-1)?.[1]).toMatch(/已停止/);
});
