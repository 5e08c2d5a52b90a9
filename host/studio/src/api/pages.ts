// Lists that the host returns in pages. Pages that were read are read again while the tab is visible,
// and further pages are appended when they are needed.
import { type QueryClient, type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { useOnce } from "@wattle/page";
import { useMemo, useRef, useState } from "react";

/** Interval at which the first page and a further one are read again, in milliseconds. */
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

/** A page that was read, and the rows that have left the page before it since. */
interface ReadPage<T> {
  /** Where the page begins; `undefined` for the first one. */
  cursor: string | undefined;
  rows: readonly T[];
}

/** The part of a list that was read. The first page is always there. */
export interface Known<T> {
  pages: readonly ReadPage<T>[];
  next: string | undefined;
}

/** The indexes of the first and the last row that a user sees. */
export type View = readonly [first: number, last: number];

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
  const first = { cursor: undefined, rows: items };
  const anew = { pages: [first], next };
  if (known === undefined || next === undefined) return anew;
  const older = olderPages(known.pages, page, order);
  const follow = page.isFull
    ? isReached(known, items.at(-1), order) && older.length > 0
    : !isCut(known, older, order);
  return follow ? { pages: [first, ...older], next: known.next } : anew;
}

/**
 * Returns the list after the page at a cursor was read again, as [`renewed`] does for the first
 * one. The list stays as it is if no page begins there any more. Rows that may be missing after the
 * page are found when the page after it is read again, which then begins where this one ends.
 */
export function renewedAt<T>(
  known: Known<T>,
  cursor: string,
  page: Page<T>,
  order: Order<T>,
): Known<T> {
  const at = known.pages.findIndex((read) => read.cursor === cursor);
  if (at < 1) return known;
  const newer = known.pages.slice(0, at);
  const ids = new Set(newer.flatMap(({ rows }) => rows.map(order.id)));
  const again = { cursor, rows: page.items.filter((row) => !ids.has(order.id(row))) };
  if (page.next === undefined) return { pages: [...newer, again], next: undefined };
  const older = olderPages(known.pages.slice(at), page, order);
  // A search that the host stopped early does not lose where it was.
  const next = older.length > 0 || !page.isFull ? known.next : page.next;
  return { pages: [...newer, again, ...older], next };
}

/**
 * Returns the pages after the first one of some pages, which was read again. They have the rows
 * that are older than it, and begin where it ends.
 */
function olderPages<T>(
  pages: readonly ReadPage<T>[],
  { items, next }: Page<T>,
  order: Order<T>,
): ReadPage<T>[] {
  const ids = new Set(items.map(order.id));
  const end = timeOf(items.at(-1), order) ?? Number.POSITIVE_INFINITY;
  const isOlder = (row: T) => order.time(row) <= end && !ids.has(order.id(row));
  const [own = [], ...others] = pages.map(({ rows }) => rows.filter(isOlder));
  const left = others.map((rows, index) => ({ cursor: pages[index + 1]?.cursor, rows }));
  const [following, ...rest] = left.filter(({ rows }) => rows.length > 0);
  const rows = [...own, ...(following?.rows ?? [])];
  return rows.length === 0 ? [] : [{ cursor: next, rows }, ...rest];
}

/** Returns false if all rows of a page are newer than the known ones, so that there may be others. */
function isReached<T>(known: Known<T>, last: T | undefined, order: Order<T>): boolean {
  const end = timeOf(last, order) ?? Number.POSITIVE_INFINITY;
  return end <= (timeOf(rowsOf(known)[0], order) ?? Number.NEGATIVE_INFINITY);
}

/**
 * Returns true if a short first page lacks a row that it had before. The row was removed, or the
 * host has now stopped before it.
 */
function isCut<T>({ pages }: Known<T>, older: readonly ReadPage<T>[], order: Order<T>): boolean {
  const before = new Set(pages[0]?.rows.map(order.id));
  return older.some(({ rows }) => rows.some((row) => before.has(order.id(row))));
}

function timeOf<T>(row: T | undefined, order: Order<T>): number | undefined {
  return row === undefined ? undefined : order.time(row);
}

/** Returns the rows of all pages. */
export function rowsOf<T>({ pages }: Known<T>): T[] {
  return pages.flatMap(({ rows }) => rows);
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
  const { next } = page;
  const ids = new Set(rowsOf(known).map(order.id));
  const rows = page.items.filter((row) => !ids.has(order.id(row)));
  return rows.length === 0
    ? { ...known, next }
    : { pages: [...known.pages, { cursor, rows }], next };
}

/**
 * Returns the cursor of the page to read again after the first one; `undefined` if there is no
 * other. The number of the turn goes up by one each time. While a user sees rows of further pages,
 * every other turn is for one of these; the other turns are for all further pages, newest first.
 */
export function cursorToRead<T>(
  { pages }: Known<T>,
  turn: number,
  view: View | undefined,
): string | undefined {
  const further = pages.slice(1);
  const seen = view === undefined ? [] : further.filter((page) => isSeen(pages, page, view));
  if (seen.length === 0) return further[turn % further.length]?.cursor;
  const among = turn % 2 === 0 ? seen : further;
  return among[Math.floor(turn / 2) % among.length]?.cursor;
}

function isSeen<T>(pages: readonly ReadPage<T>[], page: ReadPage<T>, [first, last]: View): boolean {
  const before = pages.slice(0, pages.indexOf(page));
  const start = before.reduce((sum, { rows }) => sum + rows.length, 0);
  return start <= last && first < start + page.rows.length;
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
  /** Called with the rows that a user sees, of a list that renders no others. */
  onView: (view: View) => void;
}

/**
 * Reads a list. `read` returns the page at a cursor, the first one without it. A part that shows
 * the list of another key is another part: it has a `key` of its own.
 *
 * At each interval the first page is read again, and one further page after it. A host has thus
 * two requests of a list in an interval, whatever number of pages a user has read.
 */
export function usePagedList<T>(
  key: QueryKey,
  order: Order<T>,
  read: (cursor: string | undefined) => Promise<Page<T>>,
  intervalMs = INTERVAL_MS,
): List<T> {
  const client = useQueryClient();
  const known = () => client.getQueryData<Known<T>>(key);
  const turn = useRef(0);
  const view = useRef<View>(undefined);
  const { data, error, refetch } = useQuery({
    queryKey: key,
    queryFn: async (context) => {
      const page = await read(undefined);
      // A further page may have arrived meanwhile.
      const list = renewed(known(), page, order);
      if (list.pages.length === 1) return list;
      // Another reading has begun, and its first page is newer than this one.
      if (context.signal.aborted) return list;
      client.setQueryData<Known<T>>(key, list);
      const cursor = cursorToRead(list, turn.current, view.current);
      turn.current += 1;
      if (cursor === undefined) return list;
      const further = await read(cursor);
      return renewedAt(known() ?? list, cursor, further, order);
    },
    refetchInterval: intervalMs,
  });
  const rows = useMemo(() => data && rowsOf(data), [data]);
  const [isStopped, setStopped] = useState(false);
  const [more] = useOnce(async () => {
    setStopped(false);
    // A failure is that of the first page, too, which is read again soon.
    setStopped(await readFurther(client, key, order, read).catch(() => true));
  });
  return {
    rows,
    isComplete: data !== undefined && data.next === undefined,
    isStopped,
    error,
    retry: () => void refetch(),
    more: () => void more(),
    onView: (seen) => {
      view.current = seen;
    },
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
    if (after !== undefined && after.pages.length > before.pages.length) return false;
  }
  return true;
}
