// The package for a registry: modules in JavaScript with declarations, the build with the contract, and a
// `package.json` that leads to them. In the repository, `package.json` leads to the sources.

import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const TSC = join(ROOT, "plugins/node_modules/.bin/tsc");

/** Files and folders of declarations that are no modules, which the compiler does not copy. */
const DECLARATIONS = ["globals.d.ts", "wire/contract"];

/** Files and folders that are published as they are. */
const COPIED = ["README.md", "bin", "build"];

/** Writes the package to a folder. */
export function writePackage(folder) {
  rmSync(folder, { recursive: true, force: true });
  const args = ["-p", "tsconfig.package.json", "--outDir", join(folder, "lib")];
  const { status, error } = spawnSync(TSC, args, { cwd: PACKAGE, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) throw new Error("tsc found errors");
  for (const file of DECLARATIONS) {
    cpSync(join(PACKAGE, "src", file), join(folder, "lib", file), { recursive: true });
  }
  for (const file of COPIED) cpSync(join(PACKAGE, file), join(folder, file), { recursive: true });
  cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(ROOT, "wit/wattle"), join(folder, "wit"), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  const text = JSON.stringify(published(manifest), null, 2);
  writeFileSync(join(folder, "package.json"), `${text}\n`);
}

/** Returns the `package.json` of the package from that of the sources. */
export function published({ private: _, scripts: __, devDependencies: ___, ...manifest }) {
  return {
    ...manifest,
    sideEffects: manifest.sideEffects.map(module),
    exports: mapped(manifest.exports, (source) => {
      if (source.endsWith(".d.ts")) return { types: source.replace("/src/", "/lib/") };
      return { types: declaration(source), default: module(source) };
    }),
    imports: mapped(manifest.imports, ({ "wattle-guest": guest, default: test }) => {
      // The modules for components have the types of those for tests.
      return { types: declaration(test), "wattle-guest": module(guest), default: module(test) };
    }),
    files: ["bin", "build", "lib", "wit"],
  };
}

function mapped(entries, map) {
  return Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, map(entry)]));
}

function module(source) {
  return source.replace("/src/", "/lib/").replace(/\.ts$/, ".js");
}

function declaration(source) {
  return module(source).replace(/\.js$/, ".d.ts");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writePackage(join(PACKAGE, "dist"));
