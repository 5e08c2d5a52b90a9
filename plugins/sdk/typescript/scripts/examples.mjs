// The examples of pages and of documentation comments as modules, which tests run and the type
// checker reads.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** The pages with examples, relative to the package. */
const PAGES = ["README.md", "../../../host/docs/agents.md", "../../../host/docs/first-app.md"];

/** The folder of the modules, which git ignores. */
const GENERATED = join(PACKAGE, "generated");

const BLOCK = /^```ts\n([\s\S]*?)^```$/gm;

/** Returns the examples in a text. */
export function examplesIn(text) {
  return Array.from(text.matchAll(BLOCK), ([, code]) => code);
}

/** Returns the text of the documentation comments of a module. */
export function commentsIn(source) {
  const comments = source.match(/^ *\/\*\*$[\s\S]*?^ *\*\/$/gm) ?? [];
  return comments.map((comment) => comment.replace(/^ *\*? ?/gm, "")).join("\n");
}

/** Writes all examples. Returns the files. */
export function writeExamples() {
  const sources = readdirSync(join(PACKAGE, "src"), { recursive: true }).filter((file) => {
    return file.endsWith(".ts");
  });
  const texts = sources.map((file) => {
    return { file, text: commentsIn(readFileSync(join(PACKAGE, "src", file), "utf8")) };
  });
  for (const page of PAGES) {
    texts.push({ file: basename(page), text: readFileSync(join(PACKAGE, page), "utf8") });
  }
  rmSync(GENERATED, { recursive: true, force: true });
  mkdirSync(GENERATED);
  for (const { file, text } of texts) {
    examplesIn(text).forEach((code, index) => {
      const name = file.replaceAll("/", "-").replace(/\.\w+$/, "");
      const head = `// Example ${index + 1} of ${basename(file)}.\n`;
      const assert = code.includes("assert") ? 'import assert from "node:assert/strict";\n' : "";
      writeFileSync(join(GENERATED, `${name}-${index + 1}.ts`), head + assert + code);
    });
  }
}
