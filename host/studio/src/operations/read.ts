// Lists that the host returns in pages, in its own order. They are read again while the tab is
// visible.
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useAccess } from "../access/access.tsx";
import { tenantOfList } from "../access/tenant.ts";

/** Interval at which a visible tab reads each page of a list, in milliseconds. */
const PAGE_INTERVAL_MS = 5_000;

/** Interval at which a visible tab reads what the host makes of all of its data, in milliseconds. */
export const SCAN_INTERVAL_MS = 10_000;

/** Key of the query of the sizes of the store. */
export const SIZES_KEY: QueryKey = ["store-sizes"];

interface Page<T> {
  items: T[];
  next_cursor?: string | null;
}

/** What a list asks the host for, beside its own conditions. */
export interface PageQuery {
  tenant?: string;
  cursor?: string;
}

export interface PagedList<T> {
  /** Rows that were read; `undefined` before the first page. */
  rows: readonly T[] | undefined;
  isComplete: boolean;
  isReading: boolean;
  error: Error | null;
  retry: () => void;
  more: () => void;
}

/** Reads a list of the tenant, or, for who may choose, of all tenants. */
export function usePages<T>(
  key: QueryKey,
  tenant: string | undefined,
  read: (query: PageQuery) => Promise<Page<T>>,
): PagedList<T> {
  const named = tenantOfList(tenant, useAccess());
  const query = useInfiniteQuery({
    queryKey: [...key, named],
    queryFn: ({ pageParam }) =>
      read({
        ...(named === undefined ? {} : { tenant: named }),
        ...(pageParam === undefined ? {} : { cursor: pageParam }),
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: ({ state }) => PAGE_INTERVAL_MS * Math.max(state.data?.pages.length ?? 1, 1),
  });
  return {
    rows: query.data?.pages.flatMap(({ items }) => items),
    isComplete: query.data !== undefined && !query.hasNextPage,
    isReading: query.isFetchingNextPage,
    error: query.error,
    retry: () => void query.refetch(),
    more: () => void query.fetchNextPage(),
  };
}
