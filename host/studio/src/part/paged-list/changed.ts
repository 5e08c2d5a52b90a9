// Rows of a list that are new or have changed, which are marked for a moment.
import { useEffect, useState } from "react";
import type { Order } from "../../api/pages.ts";

/** Time for which a row is marked, in milliseconds. It ends before the list is read again. */
const MARKED_MS = 1_500;

const NONE: ReadonlySet<string> = new Set();

/**
 * Returns the ids of rows that changed, and of rows that are newer than all before. Older rows were
 * only read later. In a list that was empty, no row is marked.
 */
export function changedRows<T>(
  before: readonly T[] | undefined,
  after: readonly T[] | undefined,
  { id, time, state = time }: Order<T>,
): string[] {
  const [newest] = before ?? [];
  if (before === undefined || newest === undefined) return [];
  const states = new Map(before.map((row) => [id(row), state(row)]));
  const isChanged = (row: T) => {
    const known = states.get(id(row));
    return known === undefined ? time(row) > time(newest) : state(row) !== known;
  };
  return (after ?? []).filter(isChanged).map(id);
}

/** Returns the ids of the rows to mark now. */
export function useChanged<T>(
  rows: readonly T[] | undefined,
  order: Order<T>,
): ReadonlySet<string> {
  const [before, setBefore] = useState(rows);
  const [marked, setMarked] = useState(NONE);
  if (rows !== before) {
    setBefore(rows);
    const changed = changedRows(before, rows, order);
    // A further page is read just after the first one, whose rows stay marked.
    if (changed.length > 0) setMarked((now) => new Set([...now, ...changed]));
  }
  useEffect(() => {
    if (marked.size === 0) return;
    const timer = setTimeout(() => setMarked(NONE), MARKED_MS);
    return () => clearTimeout(timer);
  }, [marked]);
  return marked;
}
