// Calls of `blob`.

import * as raw from "wattle:plugin/blob@0.1.0";
import type { BlobRef, Info } from "../blob.ts";
import { call, rawOption, same } from "./convert.ts";

export function put(bytes: Uint8Array, mediaType: string): BlobRef {
  return call(() => raw.put(bytes, mediaType));
}

export function get(blob: BlobRef, offset: number, length: number | undefined): Uint8Array {
  return call(() => raw.get(blob, offset, rawOption(length, same)));
}

export function stat(blob: BlobRef): Info {
  const info = call(() => raw.stat(blob));
  return { blob: info.blob, size: Number(info.size), mediaType: info.mediaType };
}

export function link(blob: BlobRef): string {
  return call(() => raw.link(blob));
}
