// Implements `random` with a fixed seed, so that each test run gets the same numbers.

import { current } from "../state.ts";

/** Maximum number of bytes per call, as in the host. */
const MAX_BYTES = 4096;

export function bytes(length: number): Uint8Array {
  const state = current();
  return Uint8Array.from({ length: Math.min(length, MAX_BYTES) }, () => {
    // The generator mulberry32.
    state.random = (state.random + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state.random ^ (state.random >>> 15), 1 | state.random);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) & 0xff;
  });
}
