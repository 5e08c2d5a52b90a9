// What differs between two texts: the part in the middle, with a little of what is around it.

export interface TextChange {
  readonly prefix: string;
  readonly removed: string;
  readonly added: string;
  readonly suffix: string;
}

/** Returns the parts that two texts share at both ends, and what is between them. */
export function textChange(before: string, after: string): TextChange {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  if (isSplit(before, head) || isSplit(after, head)) head -= 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  if (isSplit(before, before.length - tail) || isSplit(after, after.length - tail)) tail -= 1;
  return {
    prefix: before.slice(0, head),
    removed: before.slice(head, before.length - tail),
    added: after.slice(head, after.length - tail),
    suffix: before.slice(before.length - tail),
  };
}

/** Returns true if an index is between the two halves of a character. */
function isSplit(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  const before = text.charCodeAt(index - 1);
  return code >= 0xdc00 && code < 0xe000 && before >= 0xd800 && before < 0xdc00;
}
