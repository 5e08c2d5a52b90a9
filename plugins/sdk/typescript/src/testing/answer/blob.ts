// Implements `blob` in memory.

import type { BlobRef, Info } from "../../blob.ts";
import { Failure } from "../../failure.ts";
import { current, type Picture } from "../state.ts";

export function put(bytes: Uint8Array, mediaType: string): BlobRef {
  const reference = referenceOf(bytes);
  current().blobs.set(reference, { mediaType, bytes: bytes.slice() });
  return reference;
}

export function get(blob: BlobRef, offset: number, length: number | undefined): Uint8Array {
  const { bytes } = find(blob);
  return bytes.slice(offset, length === undefined ? undefined : offset + length);
}

export function stat(blob: BlobRef): Info {
  const { bytes, mediaType } = find(blob);
  return { blob, size: bytes.length, mediaType };
}

/** Returns a path whose signature is not valid. */
export function link(blob: BlobRef): string {
  find(blob);
  return `/blobs/~/${blob.replace(/^blob:/, "")}`;
}

function find(blob: BlobRef): Picture {
  const found = current().blobs.get(blob);
  if (found === undefined) throw Failure.notFound(`there is no blob \`${blob}\``);
  return found;
}

/** Returns a string in the format of a blob reference. Its digest is not cryptographic. */
function referenceOf(bytes: Uint8Array): BlobRef {
  const word = (seed: number) => {
    let word = seed;
    for (const byte of bytes) word = (Math.imul(word ^ byte, 0x0100_0193) + seed) >>> 0;
    return word.toString(16).padStart(8, "0");
  };
  return `blob:${[1, 2, 3, 4, 5, 6, 7, 8].map(word).join("")}`;
}
