// What differs between the states with which two runs ended.
import { expect, test } from "vitest";
import { endDiff } from "../../src/travel/end-diff.ts";

const channels = (left: unknown, right: unknown) =>
  endDiff(left, right).map(({ channel }) => channel);

test("channels that differ are found in both states", () => {
  const left = { same: [1], other: 1, gone: null };
  expect(channels(left, { same: [1], other: 2, added: 1 })).toEqual(["added", "gone", "other"]);
  expect(channels({}, null)).toEqual([]);
});

test("only ids of messages are left out", () => {
  const message = (id: string, content: string) => ({ id, role: "user", content });
  expect(channels({ list: [message("a", "x")] }, { list: [message("b", "x")] })).toEqual([]);
  expect(channels({ list: [message("a", "x")] }, { list: [message("b", "y")] })).toEqual(["list"]);
  expect(channels({ list: [{ id: "a" }, 1] }, { list: [{ id: "b" }, 1] })).toEqual(["list"]);
});
