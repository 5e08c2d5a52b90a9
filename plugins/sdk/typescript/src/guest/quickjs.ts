// What QuickJS lacks: random numbers that differ, URLs, and classes for UTF-8.

import "core-js/web/url.js";
import "core-js/web/url-search-params.js";
import { bytes } from "#host/random";
import { decodeLossy, decodeUtf8, encodeUtf8 } from "../utf8.ts";
import { checkRuns } from "./phase.ts";

/** Number of random bytes that are fetched at once, each time as one host call. */
const FETCHED_BYTES = 256;

/** Number of random bytes of a number, of which 53 bits are used. */
const NUMBER_BYTES = 8;

// The generator of QuickJS is seeded when the component is built, so that each instance would get the
// same numbers.
let ready = new Uint8Array();

Math.random = () => {
  checkRuns("`Math.random`");
  if (ready.length < NUMBER_BYTES) ready = bytes(FETCHED_BYTES).slice();
  const taken = ready.subarray(0, NUMBER_BYTES);
  ready = ready.subarray(NUMBER_BYTES);
  const view = new DataView(taken.buffer, taken.byteOffset, NUMBER_BYTES);
  return ((view.getUint32(0) >>> 5) * 2 ** 26 + (view.getUint32(4) >>> 6)) / 2 ** 53;
};

class Encoder {
  readonly encoding = "utf-8";

  encode(text = ""): Uint8Array {
    return encodeUtf8(text);
  }
}

class Decoder {
  readonly encoding = "utf-8";
  readonly fatal: boolean;

  constructor(label = "utf-8", options: { fatal?: boolean } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`the encoding ${label} is not available`);
    this.fatal = options.fatal === true;
  }

  decode(bytes: ArrayBuffer | ArrayBufferView = new Uint8Array()): string {
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(bytes) ? bytes : viewOf(bytes);
    const view = new Uint8Array(buffer, byteOffset, byteLength);
    const text = this.fatal ? decodeUtf8(view) : decodeLossy(view);
    if (text === undefined) throw new TypeError("the bytes are not UTF-8");
    return text.replace(/^\ufeff/, "");
  }
}

function viewOf(buffer: ArrayBuffer): Uint8Array {
  return new Uint8Array(buffer);
}

Object.assign(globalThis, { TextDecoder: Decoder, TextEncoder: Encoder });
