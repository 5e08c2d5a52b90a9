// The filter of the list of threads, which is in the address of the view.
import { given } from "../api/given.ts";
import { numberOf } from "../part/filters/conditions.ts";
import { milliseconds } from "../part/filters/local-time.ts";
import { USUAL, usualQuery } from "../part/filters/usual.ts";
import { oneOf, type Search } from "../router/search.ts";

/** The statuses of threads. */
export const STATUSES = ["idle", "running", "interrupted", "error"] as const;

/** The search parameters of the view. Their names are those of the API. */
export const FILTER = {
  ...USUAL,
  status: oneOf(STATUSES),
  updated_from_ms: milliseconds,
  updated_to_ms: milliseconds,
};

export type ThreadFilter = Search<typeof FILTER>;

/** The conditions of a list or a count, as the API names them. */
export type ThreadQuery = ReturnType<typeof queryOf>;

/** Returns the conditions of a filter. */
export function queryOf(filter: ThreadFilter, access: Parameters<typeof usualQuery>[1]) {
  const { status } = filter;
  const updated_from_ms = numberOf(filter.updated_from_ms);
  const updated_to_ms = numberOf(filter.updated_to_ms);
  return { ...usualQuery(filter, access), ...given({ status, updated_from_ms, updated_to_ms }) };
}
