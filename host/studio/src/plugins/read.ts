// Reads the plugins of the host, which only the operator may.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, ok, type Schemas } from "../api/client.ts";

/** Interval at which a visible tab reads the plugins, in milliseconds. */
const INTERVAL_MS = 10_000;

/** A plugin, as an app uses it. */
export type Plugin = Schemas["PluginDocument"];

/** Key of the list of plugins. */
export const PLUGINS_KEY = ["plugins"] as const;

/** Reads the plugins of all apps, and those that no app uses. */
export function usePlugins(): UseQueryResult<Plugin[]> {
  return useQuery({
    queryKey: PLUGINS_KEY,
    queryFn: () => ok(api.GET("/api/v1/plugins")),
    refetchInterval: INTERVAL_MS,
  });
}

/** Reads a plugin: one entry for each app that uses it. */
export function usePlugin(plugin: string): UseQueryResult<Plugin[]> {
  return useQuery({
    queryKey: ["plugin", plugin],
    queryFn: () => ok(api.GET("/api/v1/plugins/{plugin}", { params: { path: { plugin } } })),
    refetchInterval: INTERVAL_MS,
  });
}

/** Returns the counts of what a plugin exports that are not zero, such as `2 tools`. */
export function exportsOf({ nodes, tools, reducers, routes }: Plugin): string {
  const counts: readonly (readonly [number, string, string])[] = [
    [nodes.length, "node", "nodes"],
    [tools.length, "tool", "tools"],
    [reducers.length, "reducer", "reducers"],
    [routes.length, "endpoint", "endpoints"],
  ];
  const known = counts.filter(([count]) => count > 0);
  return known.map(([count, one, many]) => `${count} ${count === 1 ? one : many}`).join(", ");
}
