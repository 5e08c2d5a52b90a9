// Reads the list of the runs of all threads, and how many there are.
import { useQuery } from "@tanstack/react-query";
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { type List, type Order, type Page, usePagedList } from "../api/pages.ts";
import type { RunsQuery } from "./filter.ts";

export type Run = Schemas["RunSummaryDocument"];

type Counts = Schemas["RunCountsDocument"];

/** Number of runs in a page. Two screens of rows are there before more are needed. */
const PAGE_SIZE = 100;

/**
 * Interval at which a visible tab reads the counts, in milliseconds; also the first page of a
 * search in texts or metadata. The host may read all runs for each of them.
 */
const SCAN_INTERVAL_MS = 10_000;

export const ORDER: Order<Run> = {
  id: ({ run }) => run,
  time: ({ created_ms }) => created_ms,
  state: ({ status }) => status,
};

/** Reads the runs that match. */
export function useRuns(query: RunsQuery): List<Run> {
  const isScan = query.text !== undefined || query.metadata !== undefined;
  const interval = isScan ? SCAN_INTERVAL_MS : undefined;
  return usePagedList(["all-runs", query], ORDER, (cursor) => readPage(query, cursor), interval);
}

async function readPage(conditions: RunsQuery, cursor: string | undefined): Promise<Page<Run>> {
  const page = { limit: PAGE_SIZE, ...given({ cursor }) };
  const params = { query: { ...conditions, ...page } };
  const { items, next_cursor } = await ok(api.GET("/api/v1/runs", { params }));
  return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
}

/** Reads how many runs of each status match the other conditions. */
export function useCounts({ status: _, ...query }: RunsQuery): Counts | undefined {
  const { data } = useQuery({
    queryKey: ["run-counts", query],
    queryFn: () => ok(api.GET("/api/v1/run-counts", { params: { query } })),
    refetchInterval: SCAN_INTERVAL_MS,
  });
  return data;
}
