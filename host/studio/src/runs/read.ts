// Reads the list of the runs of all threads, and how many there are.
import { api, ok, type Schemas } from "../api/client.ts";
import type { List, Order } from "../api/pages.ts";
import { useMatchCounts, useMatches } from "../part/filters/matches.ts";
import type { Counts } from "../part/filters/options.ts";
import type { RunsQuery } from "./filter.ts";

export type Run = Schemas["RunSummaryDocument"];

export const ORDER: Order<Run> = {
  id: ({ run }) => run,
  time: ({ created_ms }) => created_ms,
  state: ({ status }) => status,
};

/** Reads the runs that match. */
export function useRuns(query: RunsQuery): List<Run> {
  return useMatches("all-runs", query, ORDER, (query) =>
    ok(api.GET("/api/v1/runs", { params: { query } })),
  );
}

/** Reads how many runs of each status match the other conditions. */
export function useCounts(query: RunsQuery): Counts | undefined {
  return useMatchCounts("run-counts", query, (query) =>
    ok(api.GET("/api/v1/run-counts", { params: { query } })),
  );
}
