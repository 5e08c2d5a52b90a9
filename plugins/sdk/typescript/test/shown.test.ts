// Messages of the state, as clients see them.

import { describe, expect, test } from "vitest";
import { chat } from "wattle-plugin";
import { HELLO, HI, hostWith, post, refused, thread } from "./conversations.ts";

const CHAT = new chat.Chat("notes");
const TEXTS = chat.ENGLISH;

/** Returns a value as a client reads it. */
const written = (value: unknown) => JSON.parse(JSON.stringify(value));

describe("messages of the state", () => {
  const shown = (messages: unknown, status = "idle") => {
    const it = hostWith(thread("t", status, messages));
    return written(it.run(() => CHAT.show("t")).messages);
  };
  const CALLS = [
    { id: "c1", name: "save", arguments: { amount: 20 } },
    { id: "c2", name: "fly", arguments: {} },
    { id: "c3", name: "walk" },
  ];
  const MESSAGES = [
    { id: "u1", role: "user", content: "a taxi, 20" },
    { id: "a1", role: "assistant", content: "well", tool_calls: CALLS },
    {
      id: "t1",
      role: "tool",
      tool_call_id: "c1",
      name: "save",
      content: "{}",
      status: "success",
      structured: { status: "success" },
    },
    {
      id: "t2",
      role: "tool",
      tool_call_id: "c2",
      name: "fly",
      content: "no wings",
      status: "error",
    },
    { id: "a2", role: "assistant", content: "saved" },
    { id: "u2", role: "user", content: [{ text: "good" }, { text: "bye" }] },
    { id: "a3", role: "assistant", content: "bye" },
  ];

  test("a message of the assistant has tool calls with results", () => {
    const text = (text: string) => ({ type: "text", text, state: "done" });
    const step = { type: "step-start" };
    const failed = { state: "output-error" };
    expect(shown(MESSAGES)).toEqual([
      { id: "u1", role: "user", parts: [{ type: "text", text: "a taxi, 20" }] },
      {
        id: "a1",
        role: "assistant",
        parts: [
          step,
          text("well"),
          {
            type: "tool-save",
            toolCallId: "c1",
            input: { amount: 20 },
            state: "output-available",
            output: { status: "success" },
          },
          { type: "tool-fly", toolCallId: "c2", input: {}, ...failed, errorText: "no wings" },
          {
            type: "tool-walk",
            toolCallId: "c3",
            input: null,
            ...failed,
            errorText: TEXTS.unfinished,
          },
          step,
          text("saved"),
        ],
      },
      { id: "u2", role: "user", parts: [{ type: "text", text: "goodbye" }] },
      { id: "a3", role: "assistant", parts: [step, text("bye")] },
    ]);
  });

  const hello = { id: "a", role: "assistant", content: "hello" };

  test.each([
    [MESSAGES, "idle", ["u1", "a1", "u2", "a3"]],
    [MESSAGES, "running", ["u1", "a1", "u2"]],
    [[hello], "idle", ["a"]],
    [[hello], "running", []],
    [[1, { role: 2 }, { role: "user", name: 7 }, hello], "idle", ["a"]],
    [[{ id: "t", role: "tool", content: "x" }], "idle", []],
    [null, "idle", []],
    [[], "idle", []],
  ])("conversations are shown up to the last message of the user (%#)", (channel, status, ids) => {
    expect(shown(channel, status).map(({ id }: { id: string }) => id)).toEqual(ids);
  });

  test.each([
    [0, true],
    [1, false],
    [2, false],
    [3, false],
    [4, true],
    [5, true],
  ])("a reply is a last message of the model without tool calls: %i", (length, isReplied) => {
    const messages = [
      HI,
      { role: "assistant", content: "", tool_calls: [{ id: "c", name: "save" }] },
      { role: "tool", tool_call_id: "c", content: "{}" },
      HELLO,
      { role: 2 },
    ];
    const it = hostWith(thread("t", "idle", messages.slice(0, length)));
    const retry = () => it.run(() => CHAT.send(post({ threadId: "t", retry: true })));
    if (isReplied) expect(refused(retry)).toEqual([409, TEXTS.nothingToRetry]);
    else expect(retry().threadId).toBe("t");
  });
});
