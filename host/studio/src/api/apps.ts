// The apps of the host, which several views show.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, ok, type Schemas } from "./client.ts";

/** Interval at which a visible tab reads the list of apps, in milliseconds. */
const INTERVAL_MS = 10_000;

export type App = Schemas["AppDocument"];

/** Reads the loaded apps. */
export function useApps(): UseQueryResult<App[]> {
  return useQuery({
    queryKey: ["apps"],
    queryFn: () => ok(api.GET("/api/v1/apps")),
    refetchInterval: INTERVAL_MS,
  });
}
