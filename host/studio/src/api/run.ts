// A run as a whole, which several views read, and the request that cancels it.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "./client.ts";
import type { RunPlace } from "./log.ts";

export type Run = Schemas["RunDocument"];

/** Returns the document of a run, whose thread need not be known. */
export function readRunDocument({ run, tenant }: Omit<RunPlace, "thread">): Promise<Run> {
  const params = { path: { run } };
  return ok(api.GET("/api/v1/runs/{run}", { params, headers: tenantHeaders(tenant) }));
}

function runQuery({ run, tenant }: RunPlace) {
  return { queryKey: ["run", run, tenant], queryFn: () => readRunDocument({ run, tenant }) };
}

/** Reads a run, again and again in this interval. */
export function useRun(place: RunPlace, intervalMs: number | false): UseQueryResult<Run> {
  return useQuery({ ...runQuery(place), refetchInterval: intervalMs });
}

/** Reads the app of a run. */
export function useAppOf(place: RunPlace): UseQueryResult<string | undefined> {
  return useQuery({
    ...runQuery(place),
    select: ({ app }) => app ?? undefined,
    // A run stays with its app.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Cancels a run. */
export async function cancelRun({ run, tenant }: RunPlace): Promise<void> {
  const params = { path: { run } };
  await ok(api.POST("/api/v1/runs/{run}/cancel", { params, headers: tenantHeaders(tenant) }));
}
