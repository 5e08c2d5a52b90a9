// Lists that the host returns in pages. The first page is read again while the tab is visible, and
// further pages are appended when they are needed.
import { type QueryClient, type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { useOnce } from "@wattle/page";
import { useState } from "react";

/** Interval at which the first page is read again, in milliseconds. */
const INTERVAL_MS = 2_000;

/** Maximum number of pages without a new row before a user has to ask for more again. */
const EMPTY_PAGES = 10;

/** Pause before a further page is read after one without a new row, in milliseconds. */
const PAUSE_MS = 500;

/** A page of a list. `next` leads to the following one. */
export interface Page<T> {
  items: readonly T[];
  next: string | undefined;
  /** False if the host stopped before it had found as many rows as a page can have. */
  isFull: boolean;
}

/** The part of a list that was read. */
interface Known<T> {
  rows: readonly T[];
  next: string | undefined;
  /** Ids of the rows that the first page had when it was read last. */
  first: readonly string[];
}

/** How the rows of a list are told apart and ordered. The newest is first. */
export interface Order<T> {
  id: (row: T) => string;
  time: (row: T) => number;
  /** What is another value after a row has changed; its time by default. */
  state?: (row: T) => string | number;
}

/**
 * Returns the list after its first page was read again. Rows that are older than this page stay.
 * Newer rows that it does not have were removed, or no longer match the filter. The list begins
 * anew if rows may be missing between the page and the older rows.
 */
export function renewed<T>(known: Known<T> | undefined, page: Page<T>, order: Order<T>): Known<T> {
  const { items, next } = page;
  const first = items.map(order.id);
  const anew = { rows: items, next, first };
  if (known === undefined || next === undefined) return anew;
  const ids = new Set(first);
  const end = timeOf(items.at(-1), order) ?? Number.POSITIVE_INFINITY;
  const older = known.rows.filter((row) => order.time(row) <= end && !ids.has(order.id(row)));
  const follow = page.isFull
    ? isReached(known, end, order) && older.length > 0
    : !isCut(known, older, order);
  return follow ? { rows: [...items, ...older], next: known.next, first } : anew;
}

/** Returns false if all rows of a page are newer than the known ones, so that there may be others. */
function isReached<T>({ rows }: Known<T>, end: number, order: Order<T>): boolean {
  return end <= (timeOf(rows[0], order) ?? Number.NEGATIVE_INFINITY);
}

/**
 * Returns true if a short first page lacks a row that it had before. The row was removed, or the
 * host has now stopped before it.
 */
function isCut<T>({ first }: Known<T>, older: readonly T[], order: Order<T>): boolean {
  const before = new Set(first);
  return older.some((row) => before.has(order.id(row)));
}

function timeOf<T>(row: T | undefined, order: Order<T>): number | undefined {
  return row === undefined ? undefined : order.time(row);
}

/**
 * Returns the list with the page at a cursor. A row that moved between two requests is in it once.
 * The list may have begun anew while the page was read; its rows then end at another cursor, and
 * rows between them and the page would be missing.
 */
export function appended<T>(
  known: Known<T>,
  cursor: string,
  page: Page<T>,
  order: Order<T>,
): Known<T> {
  if (known.next !== cursor) return known;
  const ids = new Set(known.rows.map(order.id));
  const fresh = page.items.filter((row) => !ids.has(order.id(row)));
  return { ...known, rows: [...known.rows, ...fresh], next: page.next };
}

export interface List<T> {
  /** Rows that were read; `undefined` before the first page. */
  rows: readonly T[] | undefined;
  isComplete: boolean;
  /** True if the list reads no further page before a user asks for it. */
  isStopped: boolean;
  error: Error | null;
  /** Reads the first page again. */
  retry: () => void;
  /** Reads further pages until there is a new row. */
  more: () => void;
}

/**
 * Reads a list. `read` returns the page at a cursor, the first one without it. A part that shows
 * the list of another key is another part: it has a `key` of its own.
 */
export function usePagedList<T>(
  key: QueryKey,
  order: Order<T>,
  read: (cursor: string | undefined) => Promise<Page<T>>,
  intervalMs = INTERVAL_MS,
): List<T> {
  const client = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: async () => {
      const page = await read(undefined);
      // A further page may have arrived meanwhile.
      return renewed(client.getQueryData<Known<T>>(key), page, order);
    },
    refetchInterval: intervalMs,
  });
  const [isStopped, setStopped] = useState(false);
  const [more] = useOnce(async () => {
    setStopped(false);
    // A failure is that of the first page, too, which is read again soon.
    setStopped(await readFurther(client, key, order, read).catch(() => true));
  });
  return {
    rows: data?.rows,
    isComplete: data !== undefined && data.next === undefined,
    isStopped,
    error,
    retry: () => void refetch(),
    more: () => void more(),
  };
}

/**
 * Reads further pages until one has a new row, and as long as the list is shown. Returns true if
 * none had one.
 */
async function readFurther<T>(
  client: QueryClient,
  key: QueryKey,
  order: Order<T>,
  read: (cursor: string) => Promise<Page<T>>,
): Promise<boolean> {
  const known = () => client.getQueryData<Known<T>>(key);
  const isShown = () => client.getQueryCache().find({ queryKey: key })?.isActive() ?? false;
  for (let pages = 0; pages < EMPTY_PAGES && isShown(); pages += 1) {
    if (pages > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const before = known();
    if (before?.next === undefined) return false;
    const { next } = before;
    const page = await read(next);
    const add = (now: Known<T> | undefined) => now && appended(now, next, page, order);
    const after = client.setQueryData<Known<T>>(key, add);
    if (after !== undefined && after.rows.length > before.rows.length) return false;
  }
  return true;
}
