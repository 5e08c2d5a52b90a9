// Texts of strangers. Characters that change how the text around them is read are shown as such.

/** Characters that control the direction of text: marks, embeddings, overrides and isolates. */
const DIRECTIONS: readonly (readonly [first: number, last: number])[] = [
  [0x061c, 0x061c],
  [0x200e, 0x200f],
  [0x202a, 0x202e],
  [0x2066, 0x2069],
];

/** Where Unicode has pictures of the control characters from 0 to 31, and of 127. */
const PICTURES = 0x2400;
const DELETE = 0x7f;
const DELETE_PICTURE = 0x2421;

/** Control characters that only separate words. */
const SPACES = new Set([0x09, 0x0a, 0x0d]);

function shown(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (SPACES.has(code)) return char;
  if (code < 0x20) return String.fromCodePoint(PICTURES + code);
  if (code === DELETE) return String.fromCodePoint(DELETE_PICTURE);
  const isHidden =
    (code > DELETE && code < 0xa0) ||
    DIRECTIONS.some(([first, last]) => code >= first && code <= last);
  return isHidden ? `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]` : char;
}

/** Returns true for a character that cannot be seen, or changes the direction of text. */
export function hidden(char: string): boolean {
  return shown(char) !== char;
}

/** Returns a text in which control characters can be seen and have no effect. */
export function visible(text: string): string {
  return Array.from(text, shown).join("");
}

/** A text of a stranger, whose direction does not affect what is around it. */
export function Text({ children }: { children: string }) {
  return <bdi>{visible(children)}</bdi>;
}
