// The engines: each makes a bundle with a JavaScript engine a component.

import { pathToFileURL } from "node:url";
import { resolvePackage } from "./bundle.mjs";
import { BuildError } from "./error.mjs";
import { placesIn } from "./lines.mjs";
import { WORLD } from "./world.mjs";

const STARLINGMONKEY = "@bytecodealliance/componentize-js";

/** The names of the engines. The first one is the default. */
export const ENGINES = ["quickjs", "starlingmonkey"];

/** Makes a bundle a component. Code at the top level of the modules runs while this happens. */
export async function componentize({ folder, engine, wit, script, code, lines }) {
  try {
    if (engine === "quickjs") return await withQuickJs({ wit, script, code });
    return await withStarlingMonkey({ folder, wit, script });
  } catch (error) {
    if (error instanceof BuildError) throw error;
    const message = placesIn(error.message ?? String(error), lines);
    throw new BuildError(`${engine} cannot make the component:\n${message}`);
  }
}

async function withQuickJs({ wit, script, code }) {
  const { componentize } = await import("componentize-qjs");
  const options = { witPath: wit, world: WORLD, jsPath: script, jsSource: code };
  // The other runtime of QuickJS needs the asynchronous ABI, also for synchronous functions.
  const { component } = await componentize({ ...options, sync: true });
  return component;
}

async function withStarlingMonkey({ folder, wit, script }) {
  const path = await resolvePackage(folder, STARLINGMONKEY);
  if (path === undefined) {
    const install = `npm install --save-dev ${STARLINGMONKEY}`;
    throw new BuildError(`StarlingMonkey is not installed: ${install}`);
  }
  const { componentize } = await import(pathToFileURL(path));
  // All features stay: the host answers or denies what they import.
  const options = { witPath: wit, worldName: WORLD, sourcePath: script, disableFeatures: [] };
  const { component } = await componentize(options);
  return component;
}
