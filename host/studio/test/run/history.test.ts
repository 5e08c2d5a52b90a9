// @vitest-environment node
// The history in the request of a model call, and its messages in a state.
import { expect, test } from "vitest";
import { blake3 } from "../../src/run/blake3.ts";
import { historyOf, messagesOf } from "../../src/run/history.ts";
import { listDigest } from "../../src/run/list-digest.ts";

const MESSAGES = ["a", "b", "c", "d"];

const DIGEST = listDigest(MESSAGES);

const PLACE = { channel: "messages", at: 1, from: 1, to: 3, length: 4 };
const HISTORY = { channel: "messages", from: 1, to: 3, length: 4, digest: DIGEST };

/** A request as the host writes it, without the fields that are not read. */
const REQUEST = {
  route: 'a "route"',
  history: { ...PLACE, bytes: 70_000, digest: DIGEST },
  messages: [],
};

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
    { route: "chat", history: PLACE, messages: [] },
    { head: JSON.stringify({ route: "chat", messages: [] }), bytes: 20_000 },
    { head: JSON.stringify(REQUEST).slice(0, 60), bytes: 20_000 },
    undefined,
    null,
  ]) {
    expect(historyOf(request)).toBeUndefined();
  }
});

test("the messages of a history are in a state with the same messages", () => {
  expect(messagesOf({ messages: MESSAGES }, HISTORY)).toEqual(["b", "c"]);
  for (const state of [
    { messages: ["sent"] },
    { messages: ["a", "b", "c", "sent"] },
    { messages: "abcd" },
    { other: MESSAGES },
    null,
  ]) {
    expect(messagesOf(state, HISTORY)).toBeUndefined();
  }
});

test("messages whose text the browser does not know are taken by their number", () => {
  const history = { ...HISTORY, from: 0, to: 1, length: 1 };
  // The host may have `1.0`, which has another digest.
  for (const message of [{ a: 1 }, [{ a: [1] }], JSON.parse('{"10":"b","9":"a"}')]) {
    expect(messagesOf({ messages: [message] }, history)).toEqual([message]);
    const digest = listDigest([message]);
    expect(messagesOf({ messages: [message] }, { ...history, digest })).toEqual([message]);
  }
});

test("the digest of a list is that of the host", () => {
  const talk = (id: unknown) => [
    { id, role: "user", content: 'grüß "dich"\n' },
    {
      role: "assistant",
      content: null,
      id: "m-2",
      tool_calls: [{ id: "c", name: "add", arguments: { a: 1.5 } }],
    },
    { id: "m-3" },
    "text",
  ];
  const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);
  // Those of the tests of `host/graph/src/checkpoint/list/index.rs`.
  for (const [list, digest] of [
    [talk("m-1"), "93712bf2bd769198c5c100fa37544fb54053f7af9e57c711b858aa71d4090433"],
    [talk(7), "f8b1290e1eb0800f90fcf57afd421cece6409f52b90e75140162f770aca35c94"],
    [[], "5cb9af68283eb4c0e5220a566652aeaa86eee7c2cb2339fa4fdbfc41f0c40161"],
    [numbers(64), "f96b26f80d78be3d221cd6223121fe8008b635eda9b2d9c21592bc8ade01894b"],
    [numbers(65), "3a4d561be865b35f50fb60bee754626f0a714f053f8d2572736488609aca4ea9"],
  ] as const) {
    expect(listDigest(list)).toBe(digest);
  }
});

test("a hash is that of the published test vectors", () => {
  for (const [length, digest] of [
    [0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"],
    [1_024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"],
    [1_025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"],
    [3_072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"],
  ] as const) {
    const bytes = Uint8Array.from({ length }, (_, at) => at % 251);
    expect(Buffer.from(blake3(bytes)).toString("hex")).toBe(digest);
  }
});
