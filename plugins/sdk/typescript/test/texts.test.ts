// Functions for texts, whose outputs are those of the other SDKs.

import { describe, expect, test } from "vitest";
import { prompt } from "wattle-plugin";
import { vectors } from "./vectors.ts";

describe("prompts", () => {
  test.each(vectors.head)("the text %j is cut between characters (%#)", (text, chars, expected) => {
    expect(prompt.head(text, chars)).toBe(expected);
  });

  test.each(vectors.quoted)(
    "the quoted text %j does not contain the marker (%#)",
    (text, chars, end, expected) => {
      expect(prompt.quoted(text, chars, end)).toBe(expected);
    },
  );

  test("a text without a limit is kept whole", () => {
    expect(prompt.quoted(">>>", Number.POSITIVE_INFINITY, ">>>")).toBe("> > >");
  });
});
