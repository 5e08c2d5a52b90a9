// `wattle-plugin <command>`: the commands of the SDK.

import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { ENGINES } from "./engine.mjs";
import { BuildError } from "./error.mjs";

const USAGE = `\
usage: wattle-plugin build [ENTRY] [options]

Builds a WebAssembly component of the plugin that the module ENTRY exports by default
(src/index.ts without ENTRY).

options:
  --engine quickjs|starlingmonkey
               the JavaScript engine of the component; quickjs by default.
               starlingmonkey needs the package @bytecodealliance/componentize-js
  --out FILE   the component; dist/<name of the package>.wasm by default
  --help       print this text
`;

/** Runs a command in a folder. Returns the exit status. */
export async function main(words, folder) {
  try {
    const { values, positionals } = parse(words);
    const [command, entry, ...more] = positionals;
    if (values.help || words.length === 0) {
      console.log(USAGE);
      return 0;
    }
    if (command !== "build" || more.length > 0) throw new BuildError(USAGE);
    if (!ENGINES.includes(values.engine)) {
      throw new BuildError(`unknown engine \`${values.engine}\`; known: ${ENGINES.join(", ")}`);
    }
    const { engine, out } = values;
    console.log(report(await build({ folder, entry, engine, out })));
    return 0;
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(error.message);
    return 1;
  }
}

function parse(args) {
  const options = {
    engine: { type: "string", default: ENGINES[0] },
    help: { type: "boolean", default: false },
    out: { type: "string" },
  };
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new BuildError(`${error.message}\n\n${USAGE}`);
  }
}

/**
 * Describes a component. Its nodes, tools, reducers and handlers are left out: `wattle build` runs
 * this command and lists those of components in every language.
 */
function report({ file, bytes, engine, imports, notes }) {
  return [
    `${file}: ${(bytes / 1e6).toFixed(1)} MB, ${engine}`,
    ...(imports.length > 0 ? [`  imports   ${imports.join(", ")}`] : []),
    ...notes.map((note) => `note: ${note}`),
  ].join("\n");
}
