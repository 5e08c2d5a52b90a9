// The digest of a list, as the host computes it: `SharedList::digest` in
// `host/graph/src/checkpoint/list.rs`.
import { blake3 } from "./blake3.ts";

/** What the digest of a list begins with. */
const FORM = "wattle list 1";

/** Number of items whose digest is a part of that of the list. */
const CHUNK_ITEMS = 64;

const encoder = new TextEncoder();

/** Returns the digest of a list. Ids of messages are not part of it. */
export function listDigest(list: readonly unknown[]): string {
  const parts: Uint8Array[] = [encoder.encode(FORM), lengthBytes(list.length)];
  for (let from = 0; from < list.length; from += CHUNK_ITEMS) {
    const items = list.slice(from, from + CHUNK_ITEMS);
    const texts = items.map((item) => encoder.encode(JSON.stringify(withoutId(item))));
    parts.push(blake3(joined(texts.flatMap((text) => [lengthBytes(text.length), text]))));
  }
  return [...blake3(joined(parts))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns an item without the `id` of a message. Other values of `id` are part of the content. */
function withoutId(item: unknown): unknown {
  if (Array.isArray(item) || typeof Object(item).id !== "string") return item;
  const { id, ...rest } = Object(item);
  return rest;
}

/** Returns a length as 64 bits, the lowest ones first. */
function lengthBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  return bytes;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Returns true if the browser writes a value as the host does. It knows neither `1.0` from `1` nor
 * all digits of a long number, and it changes the order of names that are numbers.
 */
export function keepsText(value: unknown): boolean {
  if (typeof value === "number") return false;
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(keepsText);
  return Object.entries(value).every(([name, part]) => !/^\d+$/.test(name) && keepsText(part));
}
