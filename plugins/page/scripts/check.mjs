// Checks types, lints and format of all workspaces and of the studio.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { generate } from "./api.mjs";

const WORKSPACE = fileURLToPath(new URL("../..", import.meta.url));

/** The studio, which is part of the host. Its lints are those of the workspace. */
const STUDIO = fileURLToPath(new URL("../../../host/studio", import.meta.url));

function run(program, cwd, ...args) {
  const command = `${WORKSPACE}node_modules/.bin/${program}`;
  const { status, error } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} found errors`);
}

/** Checks the types of all together, so that those of libraries are read once. */
export async function check() {
  await generate();
  run("tsc", WORKSPACE);
  for (const folder of [WORKSPACE, STUDIO]) run("biome", folder, "ci", "--error-on-warnings", ".");
}
