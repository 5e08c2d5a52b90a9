// Tests of the SDK and of the templates of new apps, without a host. The interfaces of the contract, which engines provide in a component,
// are modules that call `contract` of `test/contract.ts`.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vitest/config";

const CONTRACT = new URL("../../../wit/wattle/", import.meta.url);

/** The templates of new apps. */
const TEMPLATES = fileURLToPath(new URL("../../../host/cli/templates/typescript", import.meta.url));

/** Matches an import of the contract. */
const INTERFACE = /^wattle:plugin\/([a-z]+)@0\.1\.0$/;

/** Makes each interface a module with the functions that its WIT file has. */
function contract(): Plugin {
  return {
    name: "wattle-contract",
    enforce: "pre",
    resolveId: (id) => (INTERFACE.test(id) ? `\0${id}` : undefined),
    load(id) {
      const name = INTERFACE.exec(id.slice(1))?.[1];
      if (name === undefined) return undefined;
      const wit = readFileSync(new URL(`${name}.wit`, CONTRACT), "utf8");
      // Functions of a resource are indented further.
      const functions = Array.from(
        wit.matchAll(/^ {4}%?([a-z0-9-]+): func/gm),
        ([, it = ""]) => it,
      );
      const exports = functions.map((it, index) => {
        const camel = it.replace(/-./g, (letter) => letter.slice(1).toUpperCase());
        const call = `(...args) => globalThis.contract(${JSON.stringify(`${name}.${camel}`)}, args)`;
        return `const f${index} = ${call};\nexport { f${index} as ${camel} };`;
      });
      return exports.join("\n");
    },
  };
}

/** Gives templates, which have no packages of their own, those of the SDK. */
function templates(): Plugin {
  return {
    name: "wattle-templates",
    enforce: "pre",
    resolveId(id, importer) {
      const isOfTemplate = importer?.startsWith(TEMPLATES) && /^[a-z]/.test(id);
      return isOfTemplate ? this.resolve(id, import.meta.filename) : undefined;
    },
  };
}

export default defineConfig({
  plugins: [contract(), templates()],
  test: {
    globalSetup: "test/examples.setup.mjs",
    include: ["test/**/*.test.{ts,mjs}", `${TEMPLATES}/*/test/*.test.ts`],
    // Builds take seconds on a busy machine.
    testTimeout: 60_000,
  },
});
