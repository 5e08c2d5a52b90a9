// Blobs: content-addressed bytes. State, messages and the journal contain references to blobs instead
// of bytes.

import * as host from "#host/blob";
import { Failure } from "./failure.ts";
import { decodeBase64 } from "./utf8.ts";

/** A reference to a blob: `blob:` and 64 hexadecimal digits. */
export type BlobRef = string;

/** Metadata of a blob. */
export interface Info {
  /** Reference to the blob. */
  blob: BlobRef;
  /** Size in bytes. */
  size: number;
  /** Media type, such as `image/png`. */
  mediaType: string;
}

/** A decoded data URL. */
export interface Data {
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** The decoded bytes. */
  bytes: Uint8Array;
}

/**
 * Stores bytes as a blob. Equal bytes have the same reference.
 *
 * ```ts
 * import { blob } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * new FakeHost().run(() => {
 *   const note = blob.put(new Uint8Array([1, 2, 3]), "application/octet-stream");
 *   assert.deepEqual(blob.get(note), new Uint8Array([1, 2, 3]));
 *   assert.deepEqual(blob.getRange(note, 1, 1), new Uint8Array([2]));
 *   assert.equal(blob.stat(note).size, 3);
 * });
 * ```
 */
export function put(bytes: Uint8Array, mediaType: string): BlobRef {
  return host.put(bytes, mediaType);
}

/** Reads a whole blob of at most 64 MiB. Read a larger blob in ranges, with {@link getRange}. */
export function get(blob: BlobRef): Uint8Array {
  return host.get(blob, 0, undefined);
}

/**
 * Reads up to `length` bytes of a blob, beginning at `offset`. Returns fewer bytes if the blob ends
 * earlier.
 */
export function getRange(blob: BlobRef, offset: number, length: number): Uint8Array {
  return host.get(blob, offset, length);
}

/** Returns the metadata of a blob. */
export function stat(blob: BlobRef): Info {
  return host.stat(blob);
}

/**
 * Returns a short path under which the host serves a blob over HTTP for the tenant of the call. A page
 * can use the path as the URL of an image.
 */
export function link(blob: BlobRef): string {
  return host.link(blob);
}

/**
 * Decodes a data URL of the form `data:<media type>;base64,<data>`, the format in which browsers send
 * files within JSON. The default media type is `text/plain`.
 *
 * ```ts
 * import { blob } from "wattle-plugin";
 *
 * const data = blob.parseDataUrl("data:text/plain;base64,aGk=");
 * assert.deepEqual(data.bytes, new Uint8Array([104, 105]));
 * ```
 *
 * @throws `invalid` if the string does not have this form.
 */
export function parseDataUrl(url: string): Data {
  const wrong = (reason: string) => {
    const form = "expected `data:<media type>;base64,<data>`";
    return Failure.invalid(`read a data URL: ${reason}; ${form}`);
  };
  if (!url.startsWith("data:")) throw wrong("it does not start with `data:`");
  const comma = url.indexOf(",");
  if (comma < 0) throw wrong("there is no comma");
  const kind = url.slice("data:".length, comma);
  if (!kind.endsWith(";base64")) throw wrong("it is not base64");
  const mediaType = kind.slice(0, -";base64".length).split(";")[0] || "text/plain";
  try {
    return { mediaType, bytes: decodeBase64(url.slice(comma + 1)) };
  } catch (error) {
    throw wrong(Failure.from(error).message);
  }
}
