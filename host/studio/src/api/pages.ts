// Lists that the host returns in pages. The first page is read again while the tab is visible, and
// further pages are appended when they are needed.
import { type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { useOnce } from "@wattle/page";

/** Interval at which the first page is read again, in milliseconds. */
const INTERVAL_MS = 2_000;

/** Maximum number of empty pages in a row before a user has to ask for more again. */
const EMPTY_PAGES = 10;

/** A page of a list. `next` leads to the following one. */
export interface Page<T> {
  items: readonly T[];
  next: string | undefined;
}

/** The part of a list that was read. */
interface Known<T> {
  rows: readonly T[];
  next: string | undefined;
}

/** How the rows of a list are told apart and ordered. The newest is first. */
export interface Order<T> {
  id: (row: T) => string;
  time: (row: T) => number;
}

/**
 * Returns the list after its first page was read again. Rows that are older than this page stay.
 * Newer rows that it does not have were removed, or no longer match the filter.
 */
export function renewed<T>(known: Known<T> | undefined, page: Page<T>, order: Order<T>): Known<T> {
  const oldest = page.items.at(-1);
  if (known === undefined || page.next === undefined || oldest === undefined) {
    return { rows: page.items, next: page.next };
  }
  const ids = new Set(page.items.map(order.id));
  const isOlder = (row: T) => order.time(row) <= order.time(oldest) && !ids.has(order.id(row));
  const older = known.rows.filter(isOlder);
  return { rows: [...page.items, ...older], next: older.length === 0 ? page.next : known.next };
}

/** Returns the list with a further page. A row that moved between two requests is in it once. */
export function appended<T>(known: Known<T>, page: Page<T>, order: Order<T>): Known<T> {
  const ids = new Set(known.rows.map(order.id));
  const fresh = page.items.filter((row) => !ids.has(order.id(row)));
  return { rows: [...known.rows, ...fresh], next: page.next };
}

export interface List<T> {
  /** Rows that were read; `undefined` before the first page. */
  rows: readonly T[] | undefined;
  isComplete: boolean;
  error: Error | null;
  /** Reads the first page again. */
  retry: () => void;
  /** Reads a further page. */
  more: () => void;
}

/** Reads a list. `read` returns the page at a cursor, the first one without it. */
export function usePagedList<T>(
  key: QueryKey,
  order: Order<T>,
  read: (cursor: string | undefined) => Promise<Page<T>>,
): List<T> {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const page = await read(undefined);
      // A further page may have arrived meanwhile.
      return renewed(client.getQueryData<Known<T>>(key), page, order);
    },
    refetchInterval: INTERVAL_MS,
  });
  const [more] = useOnce(async () => {
    for (let pages = 0; pages < EMPTY_PAGES; pages += 1) {
      const next = client.getQueryData<Known<T>>(key)?.next;
      if (next === undefined) return;
      const page = await read(next);
      client.setQueryData<Known<T>>(key, (known) => known && appended(known, page, order));
      if (page.items.length > 0) return;
    }
  });
  const { data, error, refetch } = query;
  return {
    rows: data?.rows,
    isComplete: data !== undefined && data.next === undefined,
    error,
    retry: () => void refetch(),
    // A failure is that of the first page, too, which is read again soon.
    more: () => void more().catch(() => undefined),
  };
}
