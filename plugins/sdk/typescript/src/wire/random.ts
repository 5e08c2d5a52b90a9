// Calls of `random`.

import * as raw from "wattle:plugin/random@0.1.0";

export function bytes(length: number): Uint8Array {
  return raw.bytes(length);
}
