// The order of a table's rows.

export type Direction = "ascending" | "descending";

export interface Sorting {
  key: string;
  direction: Direction;
}

/** What a cell is sorted by. */
export type Sortable = string | number | bigint | boolean | Date | null | undefined;

const COLLATOR = new Intl.Collator("zh-CN", { numeric: true });

/** Cells without a value come last in either direction; numbers come before texts. */
function rank(value: Sortable): number {
  if (value === null || value === undefined || Number.isNaN(value)) return 2;
  return typeof value === "string" ? 1 : 0;
}

function compare(left: Sortable, right: Sortable): number {
  if (typeof left === "string" && typeof right === "string") return COLLATOR.compare(left, right);
  const [a, b] = [left as number, right as number];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The rows in an order; rows that are equal stay as they were. */
export function sorted<R>(
  rows: readonly R[],
  keyOf: (row: R) => Sortable,
  direction: Direction,
): R[] {
  const sign = direction === "ascending" ? 1 : -1;
  const keyed = rows.map((row) => ({ row, value: keyOf(row) }));
  keyed.sort((left, right) => {
    const byRank = rank(left.value) - rank(right.value);
    if (byRank !== 0) return byRank;
    return rank(left.value) === 2 ? 0 : sign * compare(left.value, right.value);
  });
  return keyed.map(({ row }) => row);
}

/** What a click on a heading leads to: ascending, descending, and as it was. */
export function nextSorting(now: Sorting | undefined, key: string): Sorting | undefined {
  if (now?.key !== key) return { key, direction: "ascending" };
  return now.direction === "ascending" ? { key, direction: "descending" } : undefined;
}
