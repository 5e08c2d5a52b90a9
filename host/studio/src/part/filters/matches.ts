// The records of a list that match its filters, and how many there are.
import { useQuery } from "@tanstack/react-query";
import { given } from "../../api/given.ts";
import { type List, type Order, usePagedList } from "../../api/pages.ts";
import type { Counts } from "./options.ts";

/** Number of records in a page. Two screens of rows are there before more are needed. */
const PAGE_SIZE = 100;

/**
 * Interval at which a visible tab reads the counts, in milliseconds; also the first page of a
 * search in texts or metadata. The host may read all records for each of them.
 */
const SCAN_INTERVAL_MS = 10_000;

/** Conditions for which the host reads records, or which the counts do not have. */
interface Conditions {
  text?: string;
  metadata?: string;
  status?: string;
}

/** The part of a list that a request asks for. */
interface PageQuery {
  limit: number;
  cursor?: string;
}

/** A page, as the host returns it. */
interface PageDocument<T> {
  items: readonly T[];
  next_cursor?: string | null;
}

/** Reads the records that match. `name` is the first key of the query. */
export function useMatches<T, Q extends Conditions>(
  name: string,
  query: Q,
  order: Order<T>,
  read: (query: Q & PageQuery) => Promise<PageDocument<T>>,
): List<T> {
  const isScan = query.text !== undefined || query.metadata !== undefined;
  const readPage = async (cursor: string | undefined) => {
    const { items, next_cursor } = await read({ ...query, limit: PAGE_SIZE, ...given({ cursor }) });
    return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
  };
  return usePagedList([name, query], order, readPage, isScan ? SCAN_INTERVAL_MS : undefined);
}

/** Reads how many records of each status match the other conditions. */
export function useMatchCounts<Q extends Conditions>(
  name: string,
  { status: _, ...query }: Q,
  read: (query: Omit<Q, "status">) => Promise<Counts>,
): Counts | undefined {
  const { data } = useQuery({
    queryKey: [name, query],
    queryFn: () => read(query),
    refetchInterval: SCAN_INTERVAL_MS,
  });
  return data;
}
