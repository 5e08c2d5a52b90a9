// The filter of the list of runs, which is in the address of the view.
import { given } from "../api/given.ts";
import { USUAL, usualQuery } from "../part/filters/usual.ts";
import { oneOf, type Search } from "../router/search.ts";

/** The statuses of runs. */
export const STATUSES = [
  "pending",
  "running",
  "completed",
  "interrupted",
  "failed",
  "cancelled",
] as const;

/** The search parameters of the view. Their names are those of the API. */
export const FILTER = { ...USUAL, status: oneOf(STATUSES) };

export type RunsFilter = Search<typeof FILTER>;

/** The conditions of a list or a count, as the API names them. */
export type RunsQuery = ReturnType<typeof queryOf>;

/** Returns the conditions of a filter. */
export function queryOf(filter: RunsFilter, access: Parameters<typeof usualQuery>[1]) {
  return { ...usualQuery(filter, access), ...given({ status: filter.status }) };
}
