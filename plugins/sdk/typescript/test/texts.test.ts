// Functions for texts, whose outputs are those of the other SDKs.

import { describe, expect, test } from "vitest";
import { llm, prompt, redact } from "wattle-plugin";
import { thrown } from "./thrown.ts";
import { vectors } from "./vectors.ts";

describe("prompts", () => {
  test.each(vectors.fill)("the template %j is filled (%#)", (template, values, expected) => {
    expect(prompt.fill(template, values)).toBe(expected);
  });

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

describe("completions", () => {
  test.each(vectors.is_answer)("the text %j is an answer (%#): %s", (text, expected) => {
    expect(llm.Completion.ofText(text).isAnswer()).toBe(expected);
  });
});

describe("redaction", () => {
  test.each(vectors.redacted)("secrets in %j are replaced (%#)", (document, expected) => {
    expect(redact.value(document)).toEqual(expected);
    if (typeof document === "string") expect(redact.text(document)).toBe(expected);
  });

  test.each(vectors.redacted_with_additions)(
    "additions extend the default lists for %j (%#)",
    (document, expected) => {
      const redaction = new redact.Redaction({
        fields: ["Id-Card"],
        harmless: ["Secret-Kind"],
        prefixes: ["glpat-"],
      });
      expect(redaction.value(document)).toEqual(expected);
    },
  );

  test("a value that becomes JSON is redacted, and kept as it is", () => {
    const document = { at: new Date(0), keys: { toJSON: () => ({ token: "t" }) }, none: undefined };
    const shown = { at: "1970-01-01T00:00:00.000Z", keys: { token: "[redacted]" } };
    expect(redact.value(document)).toEqual(shown);
    expect(document.at).toEqual(new Date(0));
    expect(thrown(() => redact.value({ a: Number.NaN })).code).toBe("internal");
  });
});
