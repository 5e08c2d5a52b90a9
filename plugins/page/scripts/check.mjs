// Checks types, lints and format of all workspaces.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { generate } from "./api.mjs";

const WORKSPACE = fileURLToPath(new URL("../..", import.meta.url));

function run(program, ...args) {
  const command = `${WORKSPACE}node_modules/.bin/${program}`;
  const { status, error } = spawnSync(command, args, { cwd: WORKSPACE, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} found errors`);
}

/** Checks all workspaces together, so that the types of libraries are read once. */
export async function check() {
  await generate();
  run("tsc");
  run("biome", "ci", "--error-on-warnings", ".");
}
