// Whitespace of Unicode, as the Rust SDK has it. The methods of strings have another list.

/** The characters of whitespace, for a class of a regular expression. */
export const WHITESPACE =
  "\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const FIRST = new RegExp(`[^${WHITESPACE}]`);

const SPACE = new RegExp(`[${WHITESPACE}]`);

const WORDS = new RegExp(`[^${WHITESPACE}]+`, "g");

/** Returns the words of a text: what is between whitespace. */
export function wordsOf(text: string): string[] {
  return text.match(WORDS) ?? [];
}

/** Returns a text without the whitespace at its beginning and end. */
export function trimmed(text: string): string {
  const start = text.search(FIRST);
  return start < 0 ? "" : trimmedEnd(text.slice(start));
}

/** Returns a text without the whitespace at its end. */
export function trimmedEnd(text: string): string {
  let end = text.length;
  while (SPACE.test(text[end - 1] ?? "")) end -= 1;
  return text.slice(0, end);
}
