// The world of a component: the interfaces of the contract that it imports and exports.

import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BuildError } from "./error.mjs";

/** The version of the contract that the SDK is made for. */
const VERSION = "0.1.0";

/** The name of the world. */
export const WORLD = "component";

/** The contract: in the published package, or in the repository of the SDK. */
const CONTRACTS = ["../wit", "../../../../wit/wattle"].map((path) => {
  return fileURLToPath(new URL(path, import.meta.url));
});

/** Returns the text of a world. */
export function worldOf({ exported, imports }) {
  const line = (word, name) => `    ${word} wattle:plugin/${name}@${VERSION};`;
  return [
    "package wattle:guest;",
    "",
    `world ${WORLD} {`,
    ...imports.map((name) => line("import", name)),
    ...exported.map(({ name }) => line("export", name)),
    "}",
    "",
  ].join("\n");
}

/** Writes a world beside the contract. Returns the folder. */
export function writeWorld({ temporary, exported, imports }) {
  const contract = CONTRACTS.find((folder) => existsSync(folder));
  if (contract === undefined) throw new BuildError(`there is no contract at ${CONTRACTS[0]}`);
  const folder = join(temporary, "wit");
  mkdirSync(join(folder, "deps"), { recursive: true });
  cpSync(contract, join(folder, "deps", "wattle"), { recursive: true });
  writeFileSync(join(folder, "world.wit"), worldOf({ exported, imports }));
  return folder;
}
