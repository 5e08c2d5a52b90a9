// The build of a component: the plugin is bundled and described, and an engine makes the bundle a
// component for a world with the interfaces that the bundle uses.

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { bundleGuest } from "./bundle.mjs";
import { describe } from "./describe.mjs";
import { componentize } from "./engine.mjs";
import { BuildError } from "./error.mjs";
import { linesOf, withLines } from "./lines.mjs";
import { MANIFEST, withSection } from "./section.mjs";
import { writeWorld } from "./world.mjs";

/** The entry of a plugin without an argument. */
const ENTRY = "src/index.ts";

/** The interfaces that a component can export, each with what it exports. */
const EXPORTS = [
  { name: "node", list: "nodes", make: "exportNodes" },
  { name: "tool", list: "tools", make: "exportTools" },
  { name: "reducer", list: "reducers", make: "exportReducers" },
  { name: "web", list: "handlers", make: "exportHandlers" },
];

/** The name of the bundle in stacks. */
const BUNDLE = "plugin.js";

/** Builds the component of a plugin in a folder. */
export async function build({ folder, entry = ENTRY, engine, out }) {
  const path = resolve(folder, entry);
  const file = resolve(folder, out ?? join("dist", `${nameOf(folder)}.wasm`));
  const temporary = mkdtempSync(join(tmpdir(), "wattle-plugin-"));
  try {
    const description = await describe({ folder, entry: path, temporary });
    const exported = EXPORTS.filter(({ list }) => description[list].length > 0);
    if (exported.length === 0) {
      throw new BuildError(`${entry}: the plugin has no nodes, tools, reducers and handlers`);
    }
    const bundle = await bundleGuest({ folder, contents: source(path, exported, engine) });
    const wit = writeWorld({ temporary, exported, imports: bundle.imports });
    const lines = linesOf(bundle.map, folder);
    const code = withLines(bundle.code, lines);
    const script = join(temporary, BUNDLE);
    writeFileSync(script, code);
    const component = await componentize({ folder, engine, wit, script, code, lines });
    const { manifest } = description;
    write(file, manifest === undefined ? component : withSection(component, MANIFEST, manifest));
    const bytes = readFileSync(file).length;
    const { imports, notes } = bundle;
    return { file: relative(folder, file), bytes, engine, imports, notes };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Returns the name of a package without its scope. */
function nameOf(folder) {
  const manifest = join(folder, "package.json");
  let name;
  try {
    name = JSON.parse(readFileSync(manifest, "utf8")).name;
  } catch (error) {
    throw new BuildError(`cannot read ${manifest}: ${error.message}`);
  }
  if (typeof name !== "string") throw new BuildError(`${manifest} has no \`name\``);
  return name.replace(/^@[^/]*\//, "");
}

/** Returns the module of the component, which makes its exports of the plugin. */
function source(entry, exported, engine) {
  const prelude = [...(engine === "quickjs" ? ["quickjs"] : []), "console", "zod"];
  return [
    ...prelude.map((name) => `import "wattle-plugin/guest/${name}";`),
    ...exported.map(({ name, make }) => `import { ${make} } from "wattle-plugin/guest/${name}";`),
    `import plugin from ${JSON.stringify(entry)};`,
    ...exported.map(({ name, make }) => `export const ${name} = ${make}(plugin);`),
  ].join("\n");
}

/** Writes a file at once, so that a host that watches the folder never reads a part of it. */
function write(file, bytes) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.part`, bytes);
  renameSync(`${file}.part`, file);
}
