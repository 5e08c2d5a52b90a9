// A thread with its state, which several views read.
import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "./client.ts";

export type Thread = Schemas["ThreadDocument"];

/** Interval at which a visible tab reads the thread, in milliseconds. */
const INTERVAL_MS = 2_000;

/** Returns a thread. */
export function readThread(thread: string, tenant: string | undefined): Promise<Thread> {
  const params = { path: { thread } };
  return ok(api.GET("/api/v1/threads/{thread}", { params, headers: tenantHeaders(tenant) }));
}

function threadKey(thread: string, tenant: string | undefined): readonly unknown[] {
  return ["thread", thread, tenant];
}

/** Reads a thread again and again. */
export function useThread(thread: string, tenant: string | undefined): UseQueryResult<Thread> {
  return useQuery({
    queryKey: threadKey(thread, tenant),
    queryFn: () => readThread(thread, tenant),
    refetchInterval: INTERVAL_MS,
  });
}

/**
 * Reads the app of a thread. Only the document of the thread names it, and that has the state, so
 * it is read once, and not at all if its view has read it.
 */
export function useAppOf(thread: string, tenant: string | undefined): UseQueryResult<string> {
  const client = useQueryClient();
  return useQuery({
    queryKey: ["app-of", thread, tenant],
    queryFn: async () => (await readThread(thread, tenant)).app,
    initialData: () => client.getQueryData<Thread>(threadKey(thread, tenant))?.app,
    // A thread stays with its app.
    staleTime: Number.POSITIVE_INFINITY,
  });
}
