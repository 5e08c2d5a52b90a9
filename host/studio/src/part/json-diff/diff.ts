// The difference of two JSON values as a list of changes. What it costs is bounded, whatever the
// values are, because plugins and models write them.

/** Bytes of the largest values that are compared. Of larger ones, only the sizes are known. */
export const VALUE_BYTES = 1_000_000;

/** Levels of the deepest values that are compared. Few values are nested deeper. */
const DEEPEST = 64;

/** Maximum number of changes that are found. Nobody reads more. */
const MOST_CHANGES = 10_000;

/**
 * Maximum number of pairs of items that are compared to find the items that two lists share. It is
 * that of two lists with 500 items each, and takes some milliseconds.
 */
const MOST_PAIRS = 250_000;

/** The place of a value: keys of objects and indexes of lists, from the outermost. */
export type Path = readonly (string | number)[];

/**
 * A change. `sized`: the values are too large or too deep, and `before` and `after` are their sizes
 * in bytes. The index of a removed item is that in the list before, of any other that in the list
 * after.
 */
export interface Change {
  readonly path: Path;
  readonly kind: "added" | "removed" | "changed" | "sized";
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface Diff {
  readonly changes: readonly Change[];
  /** True if there are more changes than `changes` has. */
  readonly isCut: boolean;
  /** Bytes of the values that were compared. */
  readonly bytes: number;
}

/** Returns the difference of two values. `undefined` stands for a value that is not there. */
export function diffOf(before: unknown, after: unknown, most = VALUE_BYTES): Diff {
  const [old, now] = [measured(before), measured(after)];
  const isLarge = [old, now].some(({ bytes, depth }) => bytes > most || depth > DEEPEST);
  if (isLarge) {
    const sizes = {
      before: before === undefined ? undefined : old.bytes,
      after: after === undefined ? undefined : now.bytes,
    };
    return { changes: [{ path: [], kind: "sized", ...sizes }], isCut: false, bytes: 0 };
  }
  const differ = new Differ();
  differ.compare([], before, after);
  return { changes: differ.changes, isCut: differ.isCut, bytes: old.bytes + now.bytes };
}

/** Returns the size of a value as JSON, without white space, and how deep it is nested. */
export function measured(document: unknown): { bytes: number; depth: number } {
  let [bytes, deepest] = [0, 0];
  const open: [value: unknown, depth: number][] = [[document, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    if (typeof value === "string") bytes += utf8Bytes(value) + 2;
    else if (typeof value !== "object" || value === null) bytes += String(value).length;
    else {
      deepest = Math.max(deepest, depth + 1);
      const children = Array.isArray(value) ? value : Object.values(value);
      bytes += 2 + Math.max(0, children.length - 1);
      if (!Array.isArray(value)) for (const key of Object.keys(value)) bytes += utf8Bytes(key) + 3;
      for (const child of children) open.push([child, depth + 1]);
    }
  }
  return { bytes, depth: deepest };
}

function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // A pair of surrogates has four bytes.
    const isHalf = code >= 0xd800 && code < 0xe000;
    bytes += code < 0x80 ? 1 : code < 0x800 || isHalf ? 2 : 3;
  }
  return bytes;
}

class Differ {
  readonly changes: Change[] = [];
  isCut = false;

  compare(path: Path, before: unknown, after: unknown): void {
    if (this.isCut || Object.is(before, after)) return;
    if (before === undefined) this.#add({ path, kind: "added", after });
    else if (after === undefined) this.#add({ path, kind: "removed", before });
    else if (Array.isArray(before) && Array.isArray(after)) this.#lists(path, before, after);
    else if (isObject(before) && isObject(after)) this.#objects(path, before, after);
    else this.#add({ path, kind: "changed", before, after });
  }

  #add(change: Change): void {
    if (this.changes.length < MOST_CHANGES) this.changes.push(change);
    else this.isCut = true;
  }

  #objects(path: Path, before: object, after: object): void {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      this.compare([...path, key], field(before, key), field(after, key));
    }
  }

  #lists(path: Path, before: readonly unknown[], after: readonly unknown[]): void {
    const [old, now] = [before.map(textOf), after.map(textOf)];
    let [at, to] = [0, 0];
    // The pair of ends stands for a shared item, so that the items before it are compared, too.
    for (const [shared, kept] of [...sharedItems(old, now), [old.length, now.length] as const]) {
      this.#items(path, before.slice(at, shared), after.slice(to, kept), [at, to]);
      [at, to] = [shared + 1, kept + 1];
    }
  }

  /** Adds the changes of items between two shared ones: in pairs as far as both lists have them. */
  #items(
    path: Path,
    before: readonly unknown[],
    after: readonly unknown[],
    [at, to]: readonly [at: number, to: number],
  ): void {
    const isPaired = (index: number) =>
      index < before.length && index < after.length && isOne(before[index], after[index]);
    for (const [index, value] of before.entries()) {
      if (!isPaired(index))
        this.#add({ path: [...path, at + index], kind: "removed", before: value });
    }
    for (const [index, value] of after.entries()) {
      const place = [...path, to + index];
      if (isPaired(index)) this.compare(place, before[index], value);
      else this.#add({ path: place, kind: "added", after: value });
    }
  }
}

/** Returns false for objects with different ids, such as two messages. */
function isOne(before: unknown, after: unknown): boolean {
  if (!isObject(before) || !isObject(after)) return true;
  return field(before, "id") === field(after, "id");
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a field of an object itself; `undefined` if it has none. */
export function field(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

/** Returns the indexes of items that two lists share in the same order. */
function sharedItems(
  before: readonly string[],
  after: readonly string[],
): (readonly [at: number, to: number])[] {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const inner = longestShared(
    before.slice(head, before.length - tail),
    after.slice(head, after.length - tail),
  );
  return [
    ...Array.from({ length: head }, (_, index) => [index, index] as const),
    ...inner.map(([at, to]) => [head + at, head + to] as const),
    ...Array.from({ length: tail }, (_, index) => {
      const fromEnd = tail - index;
      return [before.length - fromEnd, after.length - fromEnd] as const;
    }),
  ];
}

/** Returns a longest sequence of shared items; none if the lists are too long to look for one. */
function longestShared(
  before: readonly string[],
  after: readonly string[],
): (readonly [at: number, to: number])[] {
  const width = after.length + 1;
  if (before.length * after.length > MOST_PAIRS) return [];
  // The longest sequence of the items from each pair of indexes on.
  const lengths = new Uint32Array((before.length + 1) * width);
  const lengthAt = (at: number, to: number) => lengths[at * width + to] ?? 0;
  for (let at = before.length - 1; at >= 0; at -= 1) {
    for (let to = after.length - 1; to >= 0; to -= 1) {
      lengths[at * width + to] =
        before[at] === after[to]
          ? lengthAt(at + 1, to + 1) + 1
          : Math.max(lengthAt(at + 1, to), lengthAt(at, to + 1));
    }
  }
  const shared: (readonly [number, number])[] = [];
  let [at, to] = [0, 0];
  while (at < before.length && to < after.length) {
    if (before[at] === after[to]) {
      shared.push([at, to]);
      [at, to] = [at + 1, to + 1];
    } else if (lengthAt(at + 1, to) >= lengthAt(at, to + 1)) at += 1;
    else to += 1;
  }
  return shared;
}
