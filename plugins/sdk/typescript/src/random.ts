// Random numbers from the operating system. They are journaled, so a node that is executed again gets
// the same numbers.

import * as host from "#host/random";

/** Length of a UUID, in bytes. */
const UUID_BYTES = 16;

/**
 * Returns `length` random bytes, at most 4,096.
 *
 * `Math.random()` works in a guest as well: it takes its numbers from here.
 *
 * ```ts
 * import { random } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * new FakeHost().run(() => {
 *   assert.equal(random.bytes(16).length, 16);
 *   assert.notEqual(random.uuid(), random.uuid());
 * });
 * ```
 */
export function bytes(length: number): Uint8Array {
  return host.bytes(length);
}

/** Returns a new UUID of version 4, such as `3f1c0d1e-8b51-4a5e-9d0c-6a2f5f7b1c22`. */
export function uuid(): string {
  const digits = [...bytes(UUID_BYTES)].map((byte, index) => {
    const versioned = index === 6 ? (byte & 0x0f) | 0x40 : byte;
    const marked = index === 8 ? (byte & 0x3f) | 0x80 : versioned;
    return marked.toString(16).padStart(2, "0");
  });
  const hex = digits.join("");
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...groups, hex.slice(20)].join("-");
}
