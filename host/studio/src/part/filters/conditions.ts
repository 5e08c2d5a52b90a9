// Values of filters that several lists have, as addresses and requests have them.
import type { Check } from "../../router/search.ts";

/** Maximum number of bytes of a text that the host compares with records (`SEARCH_TEXT_BYTES`). */
const TEXT_BYTES = 512;

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

/** Accepts a text that the host compares with records. */
export const words: Check = (text) =>
  text !== "" && bytesOf(text) <= TEXT_BYTES ? text : undefined;

/** Returns the number in a parameter. */
export function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

/** Returns true if a query has a condition other than the tenant. */
export function isFiltered(query: object): boolean {
  return Object.keys(query).some((name) => name !== "tenant");
}
