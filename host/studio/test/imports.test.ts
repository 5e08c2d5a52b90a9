// @vitest-environment node
// What the studio imports. It has no packages of its own: they are those of the workspace of pages.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const STUDIO = join(dirname(fileURLToPath(import.meta.url)), "..");
const WORKSPACE = join(STUDIO, "../../plugins");

/** The package of a module that is not in the own sources. */
const PACKAGE = /(?:from|import\()\s*"((?:@[\w-]+\/)?\w[\w.-]*)/g;

function dependencies(manifest: string): string[] {
  return Object.keys(JSON.parse(readFileSync(manifest, "utf8")).dependencies);
}

function sources(): string[] {
  const entries = readdirSync(join(STUDIO, "src"), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
}

test("each package that the studio imports is installed for it or for the shared parts", () => {
  const installed = new Set([
    "@wattle/page",
    ...dependencies(join(WORKSPACE, "package.json")),
    ...dependencies(join(WORKSPACE, "page/package.json")),
  ]);
  const imported = sources().flatMap((text) => [...text.matchAll(PACKAGE)].map(([, name]) => name));
  expect(imported).toContain("@tanstack/react-router");
  expect(imported.filter((name) => !installed.has(name ?? ""))).toEqual([]);
});
