// The failure of a call that must fail.

import { Failure } from "wattle-plugin";

export function thrown(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the call did not fail");
}
