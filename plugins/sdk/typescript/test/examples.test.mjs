import { describe, expect, test } from "vitest";
import { commentsIn, examplesIn } from "../scripts/examples.mjs";

const modules = import.meta.glob("../generated/*.ts");

describe("examples of the documentation", () => {
  test.each(Object.keys(modules))("%s runs", async (file) => {
    await modules[file]();
  });

  test("examples are found in comments and pages", () => {
    const source =
      'const a = 1;\n/**\n * Text.\n *\n * ```ts\n * f("a");\n * ```\n */\nfunction f() {}\n';
    expect(examplesIn(commentsIn(source))).toEqual(['f("a");\n']);
    expect(examplesIn("```json\n{}\n```\n\n```ts\na\n```\n")).toEqual(["a\n"]);
    const files = Object.keys(modules);
    expect(files).toContain("../generated/README-1.ts");
    expect(files).toContain("../generated/sql-database-1.ts");
  });
});
