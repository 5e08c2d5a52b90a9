// UTF-8 and base64, which QuickJS does not have classes for.

import { Failure } from "./failure.ts";

/** The code point of the character that replaces what is not UTF-8. */
const REPLACEMENT = 0xfffd;

/** Number of code points that are joined at once, since calls have a limited number of arguments. */
const CHUNK = 4096;

/** Encodes a text as UTF-8. A lone surrogate becomes the replacement character. */
export function encodeUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 3);
  let length = 0;
  for (const character of text) {
    const point = codePoint(character);
    if (point < 0x80) {
      bytes[length++] = point;
      continue;
    }
    if (point < 0x800) {
      bytes[length++] = 0xc0 | (point >> 6);
    } else {
      if (point < 0x10000) {
        bytes[length++] = 0xe0 | (point >> 12);
      } else {
        bytes[length++] = 0xf0 | (point >> 18);
        bytes[length++] = 0x80 | ((point >> 12) & 0x3f);
      }
      bytes[length++] = 0x80 | ((point >> 6) & 0x3f);
    }
    bytes[length++] = 0x80 | (point & 0x3f);
  }
  return bytes.slice(0, length);
}

/** Returns the number of bytes of a text as UTF-8. */
export function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const point = codePoint(character);
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return length;
}

/** Decodes UTF-8. Returns `undefined` if the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return decode(bytes, false);
}

/** Decodes UTF-8, and replaces what is not UTF-8. */
export function decodeLossy(bytes: Uint8Array): string {
  return decode(bytes, true) ?? "";
}

function codePoint(character: string): number {
  const point = character.codePointAt(0) as number;
  return point >= 0xd800 && point <= 0xdfff ? REPLACEMENT : point;
}

function decode(bytes: Uint8Array, isLossy: boolean): string | undefined {
  let text = "";
  let points: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { point, length } = next(bytes, at);
    if (point === undefined && !isLossy) return undefined;
    points.push(point ?? REPLACEMENT);
    at += length;
    if (points.length === CHUNK) {
      text += String.fromCodePoint(...points);
      points = [];
    }
  }
  return text + String.fromCodePoint(...points);
}

/** Returns the code point at an index with its length, or the length of what is no code point. */
function next(bytes: Uint8Array, at: number): { point?: number; length: number } {
  const first = bytes[at] as number;
  if (first < 0x80) return { point: first, length: 1 };
  const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return { length: 1 };
  let point = first & (0x7f >> size);
  for (let index = 1; index < size; index++) {
    const byte = bytes[at + index];
    const [least, most] = index === 1 ? secondByte(first) : [0x80, 0xbf];
    if (byte === undefined || byte < least || byte > most) return { length: index };
    point = (point << 6) | (byte & 0x3f);
  }
  return { point, length: size };
}

/** Returns the range of the second byte, which excludes longer forms, surrogates and large values. */
function secondByte(first: number): [least: number, most: number] {
  if (first === 0xe0) return [0xa0, 0xbf];
  if (first === 0xed) return [0x80, 0x9f];
  if (first === 0xf0) return [0x90, 0xbf];
  if (first === 0xf4) return [0x80, 0x8f];
  return [0x80, 0xbf];
}

/** The functions that all engines have, in no library of TypeScript without browsers or Node.js. */
const { atob, btoa } = globalThis as unknown as Record<"atob" | "btoa", (text: string) => string>;

/** Encodes bytes as base64. */
export function encodeBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(text);
}

/** Decodes base64. */
export function decodeBase64(text: string): Uint8Array {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) {
    throw Failure.invalid("the text is not base64");
  }
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
