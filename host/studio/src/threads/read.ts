// Reads the list of threads, and how many there are.
import { useQuery } from "@tanstack/react-query";
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { type List, type Order, type Page, usePagedList } from "../api/pages.ts";
import type { ThreadQuery } from "./filter.ts";

export type Thread = Schemas["ThreadSummary"];

type Counts = Schemas["ThreadCountsDocument"];

/** Number of threads in a page. Two screens of rows are there before more are needed. */
const PAGE_SIZE = 100;

/**
 * Interval at which a visible tab reads the counts, in milliseconds; also the first page of a
 * search in texts or metadata. The host may read all threads for each of them.
 */
const SCAN_INTERVAL_MS = 10_000;

export const ORDER: Order<Thread> = {
  id: ({ thread_id }) => thread_id,
  time: ({ updated_ms }) => updated_ms,
};

/** Reads the threads that match. */
export function useThreads(query: ThreadQuery): List<Thread> {
  const isScan = query.text !== undefined || query.metadata !== undefined;
  const interval = isScan ? SCAN_INTERVAL_MS : undefined;
  return usePagedList(["threads", query], ORDER, (cursor) => readPage(query, cursor), interval);
}

async function readPage(
  conditions: ThreadQuery,
  cursor: string | undefined,
): Promise<Page<Thread>> {
  const page = { limit: PAGE_SIZE, ...given({ cursor }) };
  const params = { query: { ...conditions, ...page } };
  const { items, next_cursor } = await ok(api.GET("/api/v1/threads", { params }));
  return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
}

/** Reads how many threads of each status match the other conditions. */
export function useCounts({ status: _, ...query }: ThreadQuery): Counts | undefined {
  const { data } = useQuery({
    queryKey: ["thread-counts", query],
    queryFn: () => ok(api.GET("/api/v1/thread-counts", { params: { query } })),
    refetchInterval: SCAN_INTERVAL_MS,
  });
  return data;
}
