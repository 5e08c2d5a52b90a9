// Types, lints and format of one workspace.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { generate } from "./api.mjs";

const BIN = fileURLToPath(new URL("../../node_modules/.bin/", import.meta.url));

function run(program, ...args) {
  const { status, error } = spawnSync(BIN + program, args, { stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} found errors`);
}

/** Checks the workspace in the current folder. */
export async function check() {
  await generate();
  run("tsc", "--noEmit");
  run("biome", "ci", "--error-on-warnings", ".");
}
