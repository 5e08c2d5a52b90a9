// The published package: its `package.json`, and its modules in Node.js and in a component.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { published, writePackage } from "../scripts/package.mjs";

const PACKAGE = new URL("../", import.meta.url);
const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

/** A plugin that uses the package. */
const PLUGIN = `
import { node, Outcome, plugin } from "wattle-plugin";

export default plugin(node("go", {}, () => Outcome.nothing().goto("next")));
`;

/** A module that runs the plugin in Node.js. */
const RUN = `
import { runNode } from "wattle-plugin/testing";
import plugin from "./plugin.mjs";

console.log(runNode(plugin.nodes[0], {}).goto[0]);
`;

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

test("the package runs a plugin in Node.js and builds its component", async () => {
  const folder = mkdtempSync(join(tmpdir(), "package-"));
  try {
    const installed = join(folder, "node_modules/wattle-plugin");
    writePackage(installed);
    symlinkSync(PACKAGES, join(installed, "node_modules"), "dir");
    const { exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    for (const target of Object.values(exports).flatMap(Object.values)) {
      expect(existsSync(join(installed, target.replace("*", "web")))).toBe(true);
    }
    writeFileSync(join(folder, "package.json"), '{"name":"trial"}');
    writeFileSync(join(folder, "plugin.mjs"), PLUGIN);
    writeFileSync(join(folder, "run.mjs"), RUN);
    const run = promisify(execFile);
    const ran = await run(process.execPath, ["run.mjs"], { cwd: folder });
    expect(ran.stdout).toBe("next\n");
    const build = [join(installed, "bin/wattle-plugin.mjs"), "build", "plugin.mjs"];
    const built = await run(process.execPath, build, { cwd: folder });
    expect(built.stdout).toContain("dist/trial.wasm: ");
    expect(existsSync(join(folder, "dist/trial.wasm"))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
