// `wit/wattle/blob.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/blob@0.1.0" {
  import type { BlobRef, Integer, Option } from "wattle:plugin/types@0.1.0";

  export interface Info {
    blob: BlobRef;
    size: Integer;
    mediaType: string;
  }

  export function put(bytes: Uint8Array, mediaType: string): BlobRef;
  export function get(blob: BlobRef, offset: Integer, length: Option<Integer>): Uint8Array;
  export function link(blob: BlobRef): string;
  export function stat(blob: BlobRef): Info;
}
