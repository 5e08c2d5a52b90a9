// The difference of two JSON values.
import { expect, test } from "vitest";
import { type Change, diffOf, measured, VALUE_BYTES } from "../../../src/part/json-diff/diff.ts";
import { pathText } from "../../../src/part/json-diff/json-diff.tsx";
import { textChange } from "../../../src/part/json-diff/text-change.ts";

/** Returns the changes as lines. */
function lines(before: unknown, after: unknown): string[] {
  return diffOf(before, after).changes.map(line);
}

function line({ path, kind, before, after }: Change): string {
  const [old, now] = [JSON.stringify(before) ?? "-", JSON.stringify(after) ?? "-"];
  return `${kind} ${pathText(path)} ${old} ${now}`;
}

test("fields of objects are added, removed and changed", () => {
  const before = { same: [1, { a: 2 }], old: 1, deep: { "odd key": { n: 1 } } };
  const after = { same: [1, { a: 2 }], deep: { "odd key": { n: 2 } }, fresh: null };
  expect(lines(before, after)).toEqual([
    "removed old 1 -",
    'changed deep["odd key"].n 1 2',
    "added fresh - null",
  ]);
  expect(lines(before, structuredClone(before))).toEqual([]);
});

test("a value can appear, disappear and change its type", () => {
  expect(lines(undefined, { a: 1 })).toEqual(['added  - {"a":1}']);
  expect(lines("x", undefined)).toEqual(['removed  "x" -']);
  expect(lines({ a: [1] }, { a: { 0: 1 } })).toEqual(['changed a [1] {"0":1}']);
  expect(lines(undefined, undefined)).toEqual([]);
  expect(lines(null, 0)).toEqual(["changed  null 0"]);
});

test("items of lists are found again after others were added and removed", () => {
  expect(lines([1, 2, 3], [1, 2, 3, 4])).toEqual(["added [3] - 4"]);
  expect(lines([1, 2, 3, 4], [3, 4])).toEqual(["removed [0] 1 -", "removed [1] 2 -"]);
  expect(lines(["a", "b", "c", "d"], ["b", "x", "d", "e"])).toEqual([
    'removed [0] "a" -',
    'changed [1] "c" "x"',
    'added [3] - "e"',
  ]);
});

test("messages with the same id are compared, others are replaced", () => {
  const message = (id: string, content: string) => ({ id, content });
  expect(lines([message("1", "Hello")], [message("1", "Hello!")])).toEqual([
    'changed [0].content "Hello" "Hello!"',
  ]);
  expect(lines([message("1", "a")], [message("2", "b")])).toEqual([
    'removed [0] {"id":"1","content":"a"} -',
    'added [0] - {"id":"2","content":"b"}',
  ]);
});

test("names of the prototype are names like others", () => {
  const before = JSON.parse('{"__proto__": {"a": 1}, "x": 1}');
  expect(lines(before, { x: 1, constructor: 2 })).toEqual([
    'removed __proto__ {"a":1} -',
    "added constructor - 2",
  ]);
});

test("of large and of deep values only the sizes are compared", () => {
  const large = "x".repeat(VALUE_BYTES);
  expect(diffOf(large, "y").changes).toEqual([
    { path: [], kind: "sized", before: VALUE_BYTES + 2, after: 3 },
  ]);
  expect(diffOf(undefined, large).changes[0]?.before).toBeUndefined();
  let deep: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  expect(diffOf(deep, 1).changes[0]?.kind).toBe("sized");
  expect(measured({ ä: ["😀", null, 10] }).bytes).toBe(
    new TextEncoder().encode('{"ä":["😀",null,10]}').length,
  );
});

test("the changes of long lists without anything in common are bounded", () => {
  const before = Array.from({ length: 20_000 }, (_, index) => index);
  const after = before.map((index) => index + 50_000);
  const { changes, isCut } = diffOf(before, after);
  expect([changes.length, isCut]).toEqual([10_000, true]);
});

test("a change within a text keeps what is around it, and whole characters", () => {
  expect(textChange("The red tree.", "The green tree.")).toEqual({
    prefix: "The ",
    removed: "red",
    added: "green",
    suffix: " tree.",
  });
  expect(textChange("aa", "aaa")).toEqual({ prefix: "aa", removed: "", added: "a", suffix: "" });
  expect(textChange("x😀y", "x😁y")).toEqual({
    prefix: "x",
    removed: "😀",
    added: "😁",
    suffix: "y",
  });
});
