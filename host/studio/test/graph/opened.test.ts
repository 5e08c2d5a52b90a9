// @vitest-environment node
// The open nodes of a picture in an address.
import { expect, test } from "vitest";
import { openedIn, openedText, openNodes } from "../../src/graph/opened.ts";

test("an address has the open nodes", () => {
  for (const open of [["a"], ["a", "b/c"], []]) {
    const text = openedText(new Set(open), "z/q");
    expect([...openedIn(text, "z/q")]).toEqual(open);
  }
  expect(openedText(new Set(["z"]), "z/q")).toBeUndefined();
  expect([...openedIn(undefined, "z/q")]).toEqual(["z"]);
});

test("an address is short whatever a user opens", () => {
  const names = Array.from({ length: 500 }, (_, index) => `node${index}`);
  const text = openedText(new Set(names), undefined) ?? "";
  expect(openNodes(text)).toBe(text);
  expect(openedIn(text, undefined).size).toBeGreaterThan(100);
  expect(openNodes("a".repeat(2_000))).toBeUndefined();
});
