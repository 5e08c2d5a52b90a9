// The health of the host, which several parts show.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, ok, type Schemas } from "./client.ts";

/** Interval at which a visible tab reads the health, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Reads the health of the host. */
export function useHealth(): UseQueryResult<Schemas["Health"]> {
  return useQuery({
    queryKey: ["health"],
    queryFn: () => ok(api.GET("/api/v1/health")),
    refetchInterval: INTERVAL_MS,
  });
}
