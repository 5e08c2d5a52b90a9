// @vitest-environment node
// The history in the request of a model call, and its messages in a state.
import { expect, test } from "vitest";
import { historyOf, messagesOf } from "../../src/run/history.ts";

const PLACE = { channel: "messages", at: 1, from: 1, to: 3, length: 4 };
const HISTORY = { channel: "messages", from: 1, to: 3, length: 4 };

/** A request as the host writes it, without the fields that are not read. */
const REQUEST = { route: 'a "route"', history: { ...PLACE, bytes: 70_000 }, messages: [] };

test("a request has its history also if the log has only the beginning of it", () => {
  expect(historyOf(REQUEST)).toEqual(HISTORY);
  const head = JSON.stringify(REQUEST);
  expect(historyOf({ route: REQUEST.route, head, bytes: 20_000 })).toEqual(HISTORY);
});

test("a request with all messages, and one of another form, have no history", () => {
  for (const request of [
    { route: "chat", messages: [] },
    { route: "chat", history: "long", messages: [] },
    { route: "chat", history: { channel: "messages", from: 0 }, messages: [] },
    { head: JSON.stringify({ route: "chat", messages: [] }), bytes: 20_000 },
    { head: JSON.stringify(REQUEST).slice(0, 60), bytes: 20_000 },
    undefined,
    null,
  ]) {
    expect(historyOf(request)).toBeUndefined();
  }
});

test("the messages of a history are in a state with as many messages", () => {
  const messages = ["a", "b", "c", "d"];
  expect(messagesOf({ messages }, HISTORY)).toEqual(["b", "c"]);
  for (const state of [{ messages: ["sent"] }, { messages: "abcd" }, { other: messages }, null]) {
    expect(messagesOf(state, HISTORY)).toBeUndefined();
  }
});
