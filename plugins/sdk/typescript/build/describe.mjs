// The description of a plugin: what it has, from a process of Node.js that loads it.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { bundleNode } from "./bundle.mjs";
import { BuildError } from "./error.mjs";

/** Longest time in which the modules of a plugin are loaded. They only declare what the plugin has. */
const TIMEOUT_MS = 30_000;

/** Returns the names of what a plugin has, and its manifest. */
export async function describe({ folder, entry, temporary }) {
  const script = join(temporary, "describe.mjs");
  const result = join(temporary, "description.json");
  const contents = source(entry, result);
  writeFileSync(script, await bundleNode({ folder, contents }));
  const arguments_ = ["--enable-source-maps", script];
  const child = spawn(process.execPath, arguments_, {
    cwd: folder,
    stdio: ["ignore", "inherit", "pipe"],
    timeout: TIMEOUT_MS,
  });
  const output = text(child.stderr);
  const [status, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status, signal) => resolve([status, signal]));
  });
  const errors = await output;
  const failed = (reason) => {
    return new BuildError(errors === "" ? reason : `${reason}:\n${errors.trimEnd()}`);
  };
  // Only the time limit kills the process from here.
  if (child.killed) throw failed(`loading the plugin took more than ${TIMEOUT_MS / 1000} seconds`);
  if (signal !== null) throw failed(`${signal} ended the process that loads the plugin`);
  if (status !== 0) throw failed("the plugin cannot be loaded");
  process.stderr.write(errors);
  if (!existsSync(result)) throw new BuildError("the plugin ended the process that loads it");
  return JSON.parse(readFileSync(result, "utf8"));
}

/** Returns a module that writes the description of a plugin, or says why it cannot be loaded. */
function source(entry, result) {
  return `
    import { writeFileSync } from "node:fs";
    import { Plugin } from "wattle-plugin";

    async function load() {
      const { default: plugin } = await import(${JSON.stringify(entry)});
      if (plugin instanceof Plugin) return plugin;
      throw new Error("the module has no default export of \`plugin(...)\`");
    }

    function exit(error) {
      const own = String(error?.stack).split("\\n").filter((line) => {
        return line.includes(process.cwd()) && !/\\/node_modules\\/|wattle-entry\\.js/.test(line);
      });
      console.error([String(error), ...own].join("\\n").replaceAll(process.cwd() + "/", ""));
      process.exit(1);
    }

    const plugin = await load().catch(exit);
    const names = (entries) => entries.map(({ name }) => name);
    const description = {
      nodes: names(plugin.nodes),
      tools: names(plugin.tools),
      reducers: names(plugin.reducers),
      handlers: plugin.handlers.map(({ method, path }) => method + " " + path),
      manifest: plugin.manifest,
    };
    writeFileSync(${JSON.stringify(result)}, JSON.stringify(description));
  `;
}
