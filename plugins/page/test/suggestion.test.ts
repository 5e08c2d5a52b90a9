import { afterEach, expect, test } from "vitest";
import { takeSuggestion } from "../src/index.ts";

afterEach(() => window.history.replaceState(null, "", "/"));

test("a suggestion is returned once, and is removed from the URL", () => {
  window.history.replaceState(null, "", `/?a=1&initial=${encodeURIComponent(" 昨天 & 今天 ")}#x`);
  expect(takeSuggestion()).toBe("昨天 & 今天");
  expect(window.location.search + window.location.hash).toBe("?a=1#x");
  expect(takeSuggestion()).toBe("");
});

test("a suggestion has a maximum length", () => {
  window.history.replaceState(null, "", `/?initial=${"x".repeat(5_000)}`);
  expect(takeSuggestion()).toHaveLength(2_000);
});
