// The filter of the list of threads, which is in the address of the view.
import { name, oneOf, readSearch, type Search, writeSearch } from "../router/search.ts";

/** The statuses of threads. */
export const STATUSES = ["idle", "running", "interrupted", "error"] as const;

/** The search parameters of the view. */
export const FILTER = { app: name, status: oneOf(STATUSES), tenant: name };

export type ThreadFilter = Search<typeof FILTER>;

/** Returns the filter with another value, or without it if the value is empty or not valid. */
export function withValue(
  filter: ThreadFilter,
  key: keyof ThreadFilter,
  value: string,
): ThreadFilter {
  return readSearch(writeSearch({ ...filter, [key]: value }), FILTER);
}
