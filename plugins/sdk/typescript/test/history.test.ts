// Requests with a history.

import { describe, expect, test } from "vitest";
import { type Conversation, Failure, llm, Message } from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import { thrown } from "./thrown.ts";

describe("the history of a request", () => {
  const talk: Conversation = { channel: "talk", from: 5, length: 9 };
  const request = (options: Partial<llm.RequestOptions>) =>
    new llm.Request({ route: "chat", ...options });

  test("a history has the format of the host", () => {
    const now = { role: "user", content: "now", name: undefined };
    const { extra, messages } = request({
      system: "be brief",
      history: { of: talk, until: 7, append: [now], names: { "mcp:a/b": "b" } },
      user: "later",
      retries: 0,
    });
    expect(messages).toHaveLength(2);
    expect(extra).toEqual({
      retries: 0,
      history: {
        channel: "talk",
        at: 1,
        from: 0,
        to: 7,
        append: [{ role: "user", content: "now" }],
        names: { "mcp:a/b": "b" },
      },
    });
  });

  test("a history follows the messages", () => {
    const asked = request({ messages: [Message.user("a")], history: talk, user: "b" });
    expect(asked.extra.history).toEqual({ channel: "talk", at: 1, from: 0 });
    expect(asked.text()).toBe("a\nb");
    expect(request({}).extra).toEqual({});
  });

  test("a history begins at a position or after a message", () => {
    const from = (history: Partial<llm.HistoryOptions>) => {
      const { extra } = request({ history: { of: talk, ...history } });
      return (extra.history as { from?: unknown }).from;
    };
    expect(from({ startingAt: 3, append: [], names: {} })).toBe(3);
    expect(from({ after: "m4" })).toEqual({ after: "m4" });
    const { code, message } = thrown(() => from({ startingAt: 3, after: "m4" }));
    expect(code).toBe("internal");
    expect(message).toContain("`startingAt` and `after`");
  });

  test("a completion has ids of its calls", () => {
    const completion = llm.Completion.ofToolCall("call-1", "add", { a: 1 });
    const host = new FakeHost().llm(() => completion);
    host.run(() => {
      const options = { route: "chat", history: talk };
      expect(llm.complete(options).callIds()).toEqual(["call-1"]);
      expect(llm.stream(options).finish().callIds()).toEqual(["call-1"]);
      const [answer] = llm.completeAll([options]);
      expect(answer instanceof Failure || answer?.callIds()).toEqual(["call-1"]);
      expect(llm.complete({ route: "chat" })).toBe(completion);
    });
    expect(completion.callIds()).toBeUndefined();
  });

  test("a script sets other ids, and a text has none", () => {
    const { parts } = llm.Completion.ofToolCall("call-1", "add", { a: 1 });
    const answers = [
      new llm.Completion({ parts, extra: { call_ids: ["call-1-7"] } }),
      llm.Completion.ofText("hello"),
      new llm.Completion({ parts, extra: { call_ids: [1] } }),
    ];
    const host = new FakeHost().llm(() => answers.shift() ?? new llm.Completion());
    const ids = () => llm.complete({ route: "chat", history: talk }).callIds();
    expect(host.run(() => [ids(), ids(), ids()])).toEqual([["call-1-7"], undefined, undefined]);
  });
});
