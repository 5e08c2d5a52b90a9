// A thread with its state, which several views read.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "./client.ts";
import type { ThreadPlace } from "./log.ts";

export type Thread = Schemas["ThreadDocument"];

/** Interval at which a visible tab reads the thread, in milliseconds. */
const INTERVAL_MS = 2_000;

/** Returns a thread. */
export function readThread({ thread, tenant }: ThreadPlace): Promise<Thread> {
  const params = { path: { thread } };
  return ok(api.GET("/api/v1/threads/{thread}", { params, headers: tenantHeaders(tenant) }));
}

function threadQuery(place: ThreadPlace) {
  const { thread, tenant } = place;
  return { queryKey: ["thread", thread, tenant], queryFn: () => readThread(place) };
}

/** Reads a thread again and again. */
export function useThread(place: ThreadPlace): UseQueryResult<Thread> {
  return useQuery({ ...threadQuery(place), refetchInterval: INTERVAL_MS });
}

/** Reads a thread that hardly changes while it is shown. Its state may be large. */
export function useQuietThread(place: ThreadPlace): UseQueryResult<Thread> {
  return useQuery(threadQuery(place));
}
