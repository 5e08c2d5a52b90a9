// The `package.json` of the published package.

import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { published } from "../scripts/package.mjs";

const PACKAGE = new URL("../", import.meta.url);

test("each path of the published package comes from a source", () => {
  const manifest = JSON.parse(readFileSync(new URL("package.json", PACKAGE), "utf8"));
  const { exports, imports, sideEffects, ...rest } = published(manifest);
  expect(exports["."]).toEqual({ types: "./lib/index.d.ts", default: "./lib/index.js" });
  expect(imports["#host/*"]).toEqual({
    types: "./lib/testing/answer/*.d.ts",
    "wattle-guest": "./lib/wire/*.js",
    default: "./lib/testing/answer/*.js",
  });
  const targets = [exports, imports]
    .flatMap((entries) => Object.values(entries))
    .flatMap(Object.values);
  for (const target of [...targets, ...sideEffects]) {
    const source = target
      .replace("/lib/", "/src/")
      .replace("*", "web")
      .replace(/\.js$|(\.d)?\.ts$/, "");
    // `web` is an export of components, and each import has a module for tests and for components.
    const files = [`${source}.ts`, `${source}.d.ts`, `${source.replace(/web$/, "sql")}.ts`];
    expect(files.some((file) => existsSync(new URL(file, PACKAGE)))).toBe(true);
  }
  expect(rest).toMatchObject({ name: "wattle-plugin", files: ["bin", "build", "lib", "wit"] });
  expect(rest).not.toHaveProperty("private");
  expect(rest).not.toHaveProperty("devDependencies");
});
