// Which rows of a list are marked as new or changed.
import { expect, test } from "vitest";
import { changedRows } from "../../../src/part/paged-list/changed.ts";
import { ORDER } from "../../../src/threads/read.ts";
import { threadOf } from "../../host.ts";

const LIST = [threadOf("b", 8), threadOf("a", 5)];

test("rows that are new or changed are marked", () => {
  const after = [threadOf("c", 9), threadOf("a", 9), threadOf("b", 8)];
  expect(changedRows(LIST, after, ORDER)).toEqual(["c", "a"]);
});

test("rows that were only read later are not marked", () => {
  expect(changedRows(LIST, [...LIST, threadOf("d", 4)], ORDER)).toEqual([]);
  expect(changedRows(undefined, LIST, ORDER)).toEqual([]);
  expect(changedRows([], LIST, ORDER)).toEqual([]);
  expect(changedRows(LIST, [threadOf("a", 5)], ORDER)).toEqual([]);
});
