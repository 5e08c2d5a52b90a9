// Reads the list of the runs of all threads.
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { type List, type Order, type Page, usePagedList } from "../api/pages.ts";
import type { RunsQuery } from "./filter.ts";

export type Run = Schemas["RunSummaryDocument"];

/** Number of runs in a page. Two screens of rows are there before more are needed. */
const PAGE_SIZE = 100;

/**
 * Interval at which a visible tab reads the first page of a search in texts, in milliseconds. The
 * host may read all runs for it.
 */
const SCAN_INTERVAL_MS = 10_000;

export const ORDER: Order<Run> = {
  id: ({ run }) => run,
  time: ({ created_ms }) => created_ms,
  state: ({ status }) => status,
};

/** Reads the runs that match. */
export function useRuns(query: RunsQuery): List<Run> {
  const interval = query.text === undefined ? undefined : SCAN_INTERVAL_MS;
  return usePagedList(["all-runs", query], ORDER, (cursor) => readPage(query, cursor), interval);
}

async function readPage(conditions: RunsQuery, cursor: string | undefined): Promise<Page<Run>> {
  const page = { limit: PAGE_SIZE, ...given({ cursor }) };
  const params = { query: { ...conditions, ...page } };
  const { items, next_cursor } = await ok(api.GET("/api/v1/runs", { params }));
  return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
}
