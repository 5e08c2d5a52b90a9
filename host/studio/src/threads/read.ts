// Reads the list of threads, and how many there are.
import { api, ok, type Schemas } from "../api/client.ts";
import type { List, Order } from "../api/pages.ts";
import { useMatchCounts, useMatches } from "../part/filters/matches.ts";
import type { Counts } from "../part/filters/options.ts";
import type { ThreadQuery } from "./filter.ts";

export type Thread = Schemas["ThreadSummary"];

export const ORDER: Order<Thread> = {
  id: ({ thread_id }) => thread_id,
  time: ({ updated_ms }) => updated_ms,
};

/** Reads the threads that match. */
export function useThreads(query: ThreadQuery): List<Thread> {
  return useMatches("threads", query, ORDER, (query) =>
    ok(api.GET("/api/v1/threads", { params: { query } })),
  );
}

/** Reads how many threads of each status match the other conditions. */
export function useCounts(query: ThreadQuery): Counts | undefined {
  return useMatchCounts("thread-counts", query, (query) =>
    ok(api.GET("/api/v1/thread-counts", { params: { query } })),
  );
}
