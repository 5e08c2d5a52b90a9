// The filter by metadata: pairs such as `customer=7, region=eu`. A value that is JSON is meant as
// JSON, and any other one is a text, so that `"7"` is a text and `7` is a number.
import type { Check } from "../../router/search.ts";

/** Maximum number of characters of the pairs of metadata. Proxies refuse longer addresses. */
export const METADATA_CHARS = 2_000;

/** The pairs as a JSON object, or why a text has none. */
type Read = { json: string } | { problem: Problem };

/** A pair without a key, a value that is no JSON though it begins like it, a key that is twice. */
export type Problem = { kind: "key" | "value" | "twice"; pair: string };

/** Accepts pairs of metadata. */
export const pairs: Check = (text) =>
  text !== "" && text.length <= METADATA_CHARS && "json" in readPairs(text) ? text : undefined;

/** Returns the JSON object of the pairs in a parameter, as requests have it. */
export function jsonOf(text: string | undefined): string | undefined {
  const read = readPairs(text ?? "");
  return text !== undefined && "json" in read ? read.json : undefined;
}

/** Returns the JSON object of the pairs in a text. Numbers in it are as the text has them. */
export function readPairs(text: string): Read {
  const fields = new Map<string, string>();
  for (const pair of pairsOf(text)) {
    const [key, value] = partsOf(pair);
    if (key === "") return { problem: { kind: "key", pair } };
    if (isOpen(pair)) return { problem: { kind: "value", pair } };
    if (fields.has(key)) return { problem: { kind: "twice", pair } };
    fields.set(key, isJson(value) ? value : JSON.stringify(value));
  }
  const members = Array.from(fields, ([key, value]) => `${JSON.stringify(key)}:${value}`);
  return { json: `{${members.join(",")}}` };
}

/** Splits a text at its commas, except for those within a JSON value. */
function pairsOf(text: string): string[] {
  const pairs: string[] = [];
  for (const part of text.split(",")) {
    const last = pairs.at(-1);
    if (last !== undefined && isOpen(last)) pairs[pairs.length - 1] = `${last},${part}`;
    else if (part.trim() !== "") pairs.push(part);
  }
  return pairs.map((pair) => pair.trim());
}

/** Returns key and value of a pair. The key of a pair without `=` is empty. */
function partsOf(pair: string): [key: string, value: string] {
  const at = pair.indexOf("=");
  return at < 0 ? ["", ""] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
}

/** Returns true if the value of a pair begins like a JSON text, list or object and is not complete. */
function isOpen(pair: string): boolean {
  const [, value] = partsOf(pair);
  return /^["[{]/.test(value) && !isJson(value);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
