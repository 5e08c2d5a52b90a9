// Texts of strangers.
import { expect, test } from "vitest";
import { visible } from "../../src/part/text.tsx";

test.each([
  ["plain 文字 😀", "plain 文字 😀"],
  ["a\u202Egnp.exe", "a[U+202E]gnp.exe"],
  ["\u2066x\u2069\u200F\u061C", "[U+2066]x[U+2069][U+200F][U+061C]"],
  ["\u0000\u001B[31m\u007F\u0085", "␀␛[31m␡[U+0085]"],
  ["two\nlines\tand a tab", "two\nlines\tand a tab"],
])("%j is shown as %j", (text, shown) => {
  expect(visible(text)).toBe(shown);
});
