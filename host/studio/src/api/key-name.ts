// The names of API keys, whose ids events record.
import { useQuery } from "@tanstack/react-query";
import { api, ok } from "./client.ts";

/** Time for which the names are not read again, in milliseconds. Keys are seldom made. */
const FRESH_MS = 60_000;

/**
 * Returns the name of a key; `undefined` while it is read, and for a key that was revoked, is of
 * the configuration, or belongs to somebody whose keys the host does not show.
 */
export function useKeyName(id: string | undefined): string | undefined {
  const read = useQuery({
    queryKey: ["key-names"],
    // Without the tenant of a thread, an operator gets the names of all keys.
    queryFn: () => ok(api.GET("/api/v1/key-names")),
    enabled: id !== undefined,
    staleTime: FRESH_MS,
  });
  return read.data?.find((key) => key.id === id)?.name;
}
