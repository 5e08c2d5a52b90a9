// Checks that everything public is documented, and the types of the sources as an author sees them. The
// check of all workspaces has the types of tests and examples, lints and format.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { writeExamples } from "./examples.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PROGRAMS = fileURLToPath(new URL("../../../node_modules/.bin/", import.meta.url));

function run(program, ...args) {
  const { status, error } = spawnSync(PROGRAMS + program, args, { cwd: PACKAGE, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

writeExamples();
// It also reports errors of types.
run("typedoc", "--emit", "none", "--logLevel", "Warn");
