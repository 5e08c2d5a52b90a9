// The filter of the list of runs, which is in the address of the view.
import { tenantOfList } from "../access/tenant.ts";
import { given } from "../api/given.ts";
import { numberOf, words } from "../part/filters/conditions.ts";
import { milliseconds } from "../part/filters/local-time.ts";
import { jsonOf, pairs } from "../part/filters/metadata.ts";
import { name, oneOf, type Search } from "../router/search.ts";

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
export const FILTER = {
  text: words,
  status: oneOf(STATUSES),
  app: name,
  graph: name,
  tenant: name,
  failure: words,
  metadata: pairs,
  created_from_ms: milliseconds,
  created_to_ms: milliseconds,
};

export type RunsFilter = Search<typeof FILTER>;

/** The conditions of a list or a count, as the API names them. */
export type RunsQuery = ReturnType<typeof queryOf>;

/** Returns the conditions of a filter. An operator who names no tenant sees those of all tenants. */
export function queryOf(filter: RunsFilter, access: Parameters<typeof tenantOfList>[1]) {
  const { text, status, app, graph, failure } = filter;
  const tenant = tenantOfList(filter.tenant, access);
  const metadata = jsonOf(filter.metadata);
  const created_from_ms = numberOf(filter.created_from_ms);
  const created_to_ms = numberOf(filter.created_to_ms);
  const times = { created_from_ms, created_to_ms };
  return given({ text, status, app, graph, failure, tenant, metadata, ...times });
}
