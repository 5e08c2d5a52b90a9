// Whitespace of Unicode, as the Rust SDK has it. The methods of strings have another list.

/** The characters of whitespace, for a class of a regular expression. */
export const WHITESPACE =
  "\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const WORDS = new RegExp(`[^${WHITESPACE}]+`, "g");

/** Returns the words of a text: what is between whitespace. */
export function wordsOf(text: string): string[] {
  return text.match(WORDS) ?? [];
}
