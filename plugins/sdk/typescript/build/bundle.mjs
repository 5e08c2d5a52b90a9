// Bundles: one module of the plugin with all of its packages.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { build, formatMessages } from "esbuild";
import { BuildError } from "./error.mjs";

/** The condition of `package.json` for code that runs in a component. */
const GUEST = "wattle-guest";

/** The imports of the contract. */
const CONTRACT = /^wattle:plugin\/([a-z-]+)@/;

/** The languages of zod's messages, which a bundle contains if the plugin imports `{ z }`. */
const LOCALES = /(^|\/)zod\/v4\/locales\/(?!en\.|index\.)/;

/** `import TEXT from "./file.md?raw"`: the file as text, as in Vite. */
const raw = {
  name: "raw",
  setup(build) {
    build.onResolve({ filter: /\?raw$/ }, ({ path, resolveDir }) => {
      return { path: resolve(resolveDir, path.slice(0, -"?raw".length)), namespace: "raw" };
    });
    build.onLoad({ filter: /.*/, namespace: "raw" }, ({ path }) => {
      return { contents: readFileSync(path, "utf8"), loader: "text", watchFiles: [path] };
    });
  },
};

/** Modules of Node.js have no place in a component. */
const withoutNode = {
  name: "without-node",
  setup(build) {
    build.onResolve({ filter: /^node:/ }, ({ path }) => {
      const text = `\`${path}\` is a module of Node.js, which a plugin cannot use`;
      return { errors: [{ text }] };
    });
  },
};

const COMMON = {
  bundle: true,
  charset: "utf8",
  define: { "process.env.NODE_ENV": '"production"' },
  format: "esm",
  legalComments: "none",
  logLevel: "silent",
  target: "es2023",
  write: false,
};

/** Bundles a module for Node.js. It has a source map within. */
export async function bundleNode({ folder, contents }) {
  const { outputFiles } = await run(folder, contents, {
    platform: "node",
    plugins: [raw],
    sourcemap: "inline",
    sourceRoot: `${folder}/`,
  });
  return outputFiles[0].text;
}

/** Bundles a module for a component. Returns the interfaces that it imports. */
export async function bundleGuest({ folder, contents }) {
  const { outputFiles, metafile } = await run(folder, contents, {
    conditions: [GUEST],
    external: ["wattle:plugin/*"],
    mainFields: ["module", "main"],
    metafile: true,
    platform: "neutral",
    plugins: [raw, withoutNode],
    sourcemap: "external",
  });
  const text = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text;
  const outputs = Object.values(metafile.outputs).flatMap((output) => output.imports);
  const imports = outputs.flatMap(({ path }) => CONTRACT.exec(path)?.[1] ?? []);
  return {
    code: text(".js"),
    map: JSON.parse(text(".map")),
    imports: [...new Set(imports)].sort(),
    notes: notesOn(metafile),
  };
}

/** Returns the module that a package name leads to from a folder, or `undefined`. */
export async function resolvePackage(folder, name) {
  let found;
  const look = {
    name: "look",
    setup(build) {
      build.onStart(async () => {
        found = await build.resolve(name, { kind: "import-statement", resolveDir: folder });
      });
    },
  };
  await build({ ...COMMON, platform: "node", plugins: [look], stdin: { contents: "" } });
  return found.errors.length > 0 ? undefined : found.path;
}

async function run(folder, contents, options) {
  try {
    return await build({
      ...COMMON,
      ...options,
      absWorkingDir: folder,
      outfile: resolve(folder, "plugin.js"),
      stdin: { contents, resolveDir: folder, sourcefile: "wattle-entry.js" },
    });
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    const messages = await formatMessages(error.errors, { kind: "error" });
    throw new BuildError(messages.join("\n").trimEnd());
  }
}

function notesOn({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const locales = inputs.filter(([path, { bytesInOutput }]) => {
    return LOCALES.test(path) && bytesInOutput > 0;
  });
  if (locales.length === 0) return [];
  return [
    `the component contains zod's messages in ${locales.length} languages, some 4 MB; ` +
      '`import * as z from "zod"` in place of `import { z } from "zod"` leaves them out',
  ];
}
