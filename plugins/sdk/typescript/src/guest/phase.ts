// Whether the component is being built or runs. The build executes the modules of a plugin and keeps
// their state, with which each instance begins.

import { Failure } from "../failure.ts";

let isRunning = false;

/** Notes that the host calls an export. Each export does this first. */
export function begin(): void {
  isRunning = true;
}

/** Returns true if the host has called an export, so that host calls are possible. */
export function runs(): boolean {
  return isRunning;
}

/** Fails while the component is built. */
export function checkRuns(what: string): void {
  if (isRunning) return;
  throw Failure.unsupported(
    `${what} is not available while the plugin is loaded, since all instances begin with the state ` +
      "of the build; use it in a node, a tool or a handler",
  );
}
