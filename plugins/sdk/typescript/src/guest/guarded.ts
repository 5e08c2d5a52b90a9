// Exceptions of exports.

import { Failure } from "../failure.ts";
import { rawFailure } from "../wire/convert.ts";
import { begin } from "./phase.ts";

/** Runs an export. An exception becomes a failure, which the engine gives to the host. */
export function guarded<T>(work: () => T): T {
  begin();
  try {
    return work();
  } catch (error) {
    throw rawFailure(Failure.from(error));
  }
}
