// Checks of names of nodes, tools and reducers, and of what functions of a plugin return.

import { Failure } from "./failure.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Checks a name. Graphs and models use it, so its characters are checked when the plugin is built
 * instead of when it is loaded.
 */
export function checkName(kind: string, name: string): void {
  if (NAME.test(name)) return;
  const rule = "a name has 1 to 64 characters of `[a-zA-Z0-9_-]`";
  throw Failure.invalid(`the ${kind} \`${name}\` cannot have this name: ${rule}`);
}

/** Fails if a function of a plugin returned a promise. Host calls return their results directly. */
export function checkSynchronous(what: string, returned: unknown): void {
  const { then } = (returned ?? {}) as { then?: unknown };
  if (typeof then !== "function") return;
  throw Failure.internal(
    `${what} returned a promise; write it without \`async\`, since host calls return their results`,
  );
}
