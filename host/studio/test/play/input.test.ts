// The input of a graph, and the messages of a conversation.
import { expect, test } from "vitest";
import { messagesIn, SHOWN_MESSAGES } from "../../src/play/conversation.ts";
import { inputSchema, messageChannel, titled } from "../../src/play/input.ts";

test("the input of a graph has the schemas and descriptions of its channels", () => {
  const channels = {
    number: { schema: { type: "integer" }, doc: "How many" },
    any: { schema: true },
    text: {},
  };
  expect(inputSchema({ channels })).toEqual({
    type: "object",
    properties: { number: { type: "integer", description: "How many" }, any: {}, text: {} },
  });
  expect(inputSchema(null)).toEqual({ type: "object", properties: {} });
});

test("the conversation of a graph is in its only channel of messages, or in the one of the name", () => {
  const of = (...names: string[]) => ({
    channels: Object.fromEntries([
      ...names.map((name) => [name, { reducer: "messages" }]),
      ["other", { reducer: "append" }],
    ]),
  });
  expect(messageChannel(of("talk"))).toBe("talk");
  expect(messageChannel(of("talk", "messages"))).toBe("messages");
  expect(messageChannel(of("a", "b"))).toBeUndefined();
  expect(messageChannel(of())).toBeUndefined();
});

test("a schema without a title gets one", () => {
  expect(titled({ type: "string" }, "Input")).toEqual({ title: "Input", type: "string" });
  expect(titled({ title: "Own" }, "Input")).toEqual({ title: "Own" });
  for (const schema of [undefined, null, true]) {
    expect(titled(schema, "Input")).toEqual({ title: "Input" });
  }
});

test("what is not a role, an id or a name in a message is left out", () => {
  for (const role of ["constructor", "__proto__", { toString: 1 }]) {
    const messages = [{ role, content: "hi", tool_calls: [{ id: role, name: { toString: 1 } }] }];
    const [message] = messagesIn({ messages }, "messages");
    expect(message).toMatchObject({ role: "assistant", text: "hi", asks: [{ name: "" }] });
  }
});

test("messages of every form are read, and what is not valid in them is left out", () => {
  const state = {
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [{ text: "a" }, { type: "text", text: "b" }, { blob: "blob:1" }],
        tool_calls: [
          { id: "1", name: "find", arguments: { q: 1 } },
          { id: "1", function: { name: "get", arguments: "{}" } },
        ],
      },
      { type: "tool", name: "find", content: [] },
      7,
    ],
  };
  const [user, assistant, tool, odd] = messagesIn(state, "messages");
  expect(user).toMatchObject({ role: "user", text: "hi", asks: [] });
  expect(assistant).toMatchObject({
    role: "assistant",
    text: "a\nb",
    others: [{ blob: "blob:1" }],
  });
  expect(assistant?.asks).toEqual([
    { id: "1-0", name: "find", arguments: { q: 1 } },
    { id: "1-1", name: "get", arguments: "{}" },
  ]);
  expect(tool).toMatchObject({ role: "tool", tool: "find", text: "" });
  expect(odd).toMatchObject({ role: "assistant", text: "" });
  expect(messagesIn({ messages: "x" }, "messages")).toEqual([]);
  const many = { messages: Array.from({ length: SHOWN_MESSAGES + 5 }, () => ({ content: "x" })) };
  expect(messagesIn(many, "messages")).toHaveLength(SHOWN_MESSAGES);
});
