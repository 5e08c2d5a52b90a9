// Sorting of a table's rows.
import { texts } from "../language/language.ts";

export type Direction = "ascending" | "descending";

export interface Sorting {
  key: string;
  direction: Direction;
}

/** A value by which rows are sorted. */
export type Sortable = string | number | bigint | boolean | Date | null | undefined;

/**
 * Returns the rank of a cell in both directions: numbers, then texts, then cells without a value.
 */
function rank(value: Sortable): number {
  if (value === null || value === undefined || Number.isNaN(value)) return 2;
  return typeof value === "string" ? 1 : 0;
}

function compare(left: Sortable, right: Sortable, collator: Intl.Collator): number {
  if (typeof left === "string" && typeof right === "string") return collator.compare(left, right);
  const [a, b] = [left as number, right as number];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns sorted rows. Equal rows keep their order. */
export function sorted<R>(
  rows: readonly R[],
  keyOf: (row: R) => Sortable,
  direction: Direction,
): R[] {
  const sign = direction === "ascending" ? 1 : -1;
  const collator = new Intl.Collator(texts().locale, { numeric: true });
  const keyed = rows.map((row) => ({ row, value: keyOf(row) }));
  keyed.sort((left, right) => {
    const byRank = rank(left.value) - rank(right.value);
    if (byRank !== 0) return byRank;
    return rank(left.value) === 2 ? 0 : sign * compare(left.value, right.value, collator);
  });
  return keyed.map(({ row }) => row);
}

/** Returns the sorting after a click on a heading: ascending, then descending, then none. */
export function nextSorting(now: Sorting | undefined, key: string): Sorting | undefined {
  if (now?.key !== key) return { key, direction: "ascending" };
  return now.direction === "ascending" ? { key, direction: "descending" } : undefined;
}
