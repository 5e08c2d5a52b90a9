// Messages of the AI SDK that clients send.

import { describe, expect, test } from "vitest";
import { chat, type Json } from "wattle-plugin";
import { thrown } from "./thrown.ts";

const { ui } = chat;

const LIMITS: chat.ui.Limits = { messages: 3, parts: 4, textChars: 10 };

/** Reads messages, and shortens outputs to whether they are objects. */
const sent = (messages: Json) => ui.read(messages, LIMITS, (output) => typeof output === "object");

const text = (text: string) => ({ type: "text", text });

const user = (id: string, said: string) => ({ id, role: "user", parts: [text(said)] });

describe("messages of a request", () => {
  const call = (name: string, state: string) => {
    return { type: `tool-${name}`, toolCallId: "c", state, input: {} };
  };
  const file = (filename: string, mediaType: string) => ({ type: "file", filename, mediaType });
  const ended = { ...call("search", "output-available"), output: { count: 1 } };
  const picture = { type: "file", url: "data:image/png;base64,AAAA", mediaType: "image/png" };

  test.each<[Json, Json[]]>([
    [{ type: "text", text: "x", state: "done" }, [{ type: "text", text: "x", state: "done" }]],
    [{ type: "reasoning", text: "x" }, [{ type: "reasoning", text: "x" }]],
    [{ type: "step-start" }, [{ type: "step-start" }]],
    [call("search", "input-available"), [call("search", "input-available")]],
    [ended, [{ ...ended, output: true }]],
    [call("", "input-available"), []],
    [{ type: "data-hint", data: {} }, []],
    [7, []],
    [{ ...picture, filename: "a.png" }, [file("a.png", "image/png")]],
    [{ type: "file", url: "data:,x" }, [file("a file", "application/octet-stream")]],
  ])("parts are reduced to what is stored: %j", (part, expected) => {
    const message = { id: "a", role: "assistant", parts: [part], metadata: 1 };
    expect(sent([message, user("u", "hi")])[0]?.parts).toEqual(expected);
  });

  test("messages of older clients are read", () => {
    const messages = sent([
      { role: "system", content: "x" },
      { role: "user", id: null, content: "y" },
    ]);
    expect(messages.map((it) => [it.id, it.role, it.text()])).toEqual([
      ["message-0", "system", "x"],
      ["message-1", "user", "y"],
    ]);
  });

  const assistant = (parts: Json[]) => ({ id: "b", role: "assistant", parts });
  const last = "the last message must be a text of the user";
  const page = "message 1: it is no message of a chat page";

  test.each<[Json, string]>([
    [null, "`messages` must be a list of messages"],
    [[], last],
    [[user("a", " ")], last],
    [[user("a", "hi"), assistant([])], last],
    [
      [{ id: "a", role: "robot", parts: [] }],
      `${page}: unknown variant \`robot\`, expected one of \`system\`, \`user\`, \`assistant\``,
    ],
    [[{ id: "a" }], `${page}: missing field \`role\``],
    [[{ id: 7, role: "user" }], `${page}: invalid type: integer \`7\`, expected a string`],
    [[{ role: "user", parts: "x" }], `${page}: invalid type: string "x", expected a sequence`],
    [[user("a", "x"), user("a", "y")], "two messages have the same id"],
    [
      [user("a", "x"), user("i".repeat(201), "x")],
      "message 2: its id is longer than 200 characters, or has a NUL",
    ],
    [[user("\0", "x")], "message 1: its id is longer than 200 characters, or has a NUL"],
    [[user("a", "eleven long")], "message 1: it is longer than 10 characters; say it in fewer"],
    [[assistant([{}, {}, {}, {}, {}]), user("a", "x")], "message 1: it has more than 4 parts"],
    [
      ["a", "b", "c", "d"].map((id) => user(id, "x")),
      "a conversation has at most 3 messages; begin a new one",
    ],
  ])("an invalid conversation is refused (%#)", (messages, why) => {
    const failure = thrown(() => sent(messages));
    expect([failure.status(), failure.message]).toEqual([400, why]);
  });
});

describe("parts", () => {
  test.each(["tool-search_image", "dynamic-tool"])("a part of the type %s is parsed", (type) => {
    const call = { toolName: "search_image", toolCallId: "c1", input: { count: 2 } };
    const part = { type, ...call, state: "output-error", errorText: "no" };
    expect(ui.partOf(part)).toEqual({
      type: "tool",
      name: "search_image",
      callId: "c1",
      input: { count: 2 },
      result: { type: "error", error: "no" },
    });
  });

  test("a preliminary output is no result", () => {
    const call = { type: "tool-a", toolCallId: "c", state: "output-available", output: 1 };
    const result = { type: "output", output: 1 };
    expect(ui.partOf(call)).toMatchObject({ input: null, result });
    expect(ui.partOf({ ...call, preliminary: true })).toMatchObject({ result: undefined });
  });

  test.each<[Json]>([
    [{ type: "data-step", data: {} }],
    [{ type: "tool-search_image", state: "output-available" }],
    [{ type: "tool-", toolCallId: "c1", state: "output-available" }],
    [{ type: "dynamic-tool", toolCallId: "c1", state: "output-available" }],
    [7],
    [{}],
  ])("the unknown part %j is ignored", (part) => {
    expect(ui.partOf(part)).toEqual({ type: "other" });
  });
});

describe("messages for a model", () => {
  const stored = (...parts: Json[]) => {
    const ids = new ui.CallIds();
    expect(ids.unique("used")).toBe("used");
    return ui.toStored(parts, ids, (name, result) => {
      if (result.type === "error") return result.error;
      return name === "hidden" ? undefined : JSON.stringify(result.output);
    });
  };
  const tool = (name: string, toolCallId: string, state: string) => ({
    type: `tool-${name}`,
    toolCallId,
    state,
    input: { text: "x" },
    output: { count: 0 },
    errorText: "not found",
  });
  const START = { type: "step-start" };

  test("a message is split into turns", () => {
    const messages = stored(
      START,
      { type: "reasoning", text: "hm" },
      text("First."),
      tool("search", "a", "output-available"),
      START,
      tool("load", "b", "output-error"),
      START,
      text("Sorry."),
    );
    const calls = (id: string, name: string) => [{ id, name, arguments: { text: "x" } }];
    const result = { role: "tool", tool_call_id: "a", name: "search", status: "success" };
    const error = { role: "tool", tool_call_id: "b", name: "load", status: "error" };
    expect(messages).toEqual([
      { role: "assistant", content: "First.", tool_calls: calls("a", "search"), reasoning: "hm" },
      { ...result, content: '{"count":0}' },
      { role: "assistant", content: "", tool_calls: calls("b", "load") },
      { ...error, content: "not found" },
      { role: "assistant", content: "Sorry." },
    ]);
  });

  test("calls without a result or a view are left out", () => {
    const messages = stored(
      text("Let me see."),
      tool("search", "a", "input-available"),
      tool("search", "b", "input-streaming"),
      tool("hidden", "c", "output-available"),
    );
    expect(messages).toEqual([{ role: "assistant", content: "Let me see." }]);
    expect(stored(START, tool("search", "a", "input-available"))).toEqual([]);
  });

  test("calls have unique ids", () => {
    const call = (id: string) => tool("search", id, "output-available");
    const messages = stored(call("a"), text("and"), call("a"), call("used"));
    const ids = messages.flatMap((it) => it.tool_call_id ?? []);
    expect(ids).toEqual(["a", "a-2", "used-2"]);
  });

  // A client can send as many calls with one id as its message has parts.
  test("many calls with one id are numbered", () => {
    const ids = new ui.CallIds();
    const first = ["a-3", "a", "a", "a", "a-3"].map((id) => ids.unique(id));
    expect(first).toEqual(["a-3", "a", "a-2", "a-4", "a-3-2"]);
    const wrong: string[] = [];
    for (let number = 5; number <= 100_000; number += 1) {
      const id = ids.unique("a");
      if (id !== `a-${number}`) wrong.push(id);
    }
    expect(wrong).toEqual([]);
  });
});
