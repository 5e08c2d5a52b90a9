#!/usr/bin/env node
// `wattle-page <command>`: commands for all workspaces.
//
// | command | does |
// |---|---|
// | `api` | generates the types of the native API and of the endpoints of apps |
// | `check` | generates them, then checks types, lints and format |
// | `size` | fails if the first view of a built page is too large |

import { generate } from "./api.mjs";
import { check } from "./check.mjs";
import { size } from "./size.mjs";

const COMMANDS = { api: generate, check, size };

const command = COMMANDS[process.argv[2]];
if (command === undefined) {
  console.error(`usage: wattle-page <${Object.keys(COMMANDS).join("|")}>`);
  process.exit(2);
}
try {
  await command();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
