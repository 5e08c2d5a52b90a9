// The filter that the lists of threads and of runs have in common.
import { tenantOfList } from "../../access/tenant.ts";
import { given } from "../../api/given.ts";
import { name, type Search } from "../../router/search.ts";
import { numberOf, words } from "./conditions.ts";
import { milliseconds } from "./local-time.ts";
import { jsonOf, pairs } from "./metadata.ts";

/** The search parameters of both lists. Their names are those of the API. */
export const USUAL = {
  text: words,
  app: name,
  graph: name,
  tenant: name,
  failure: words,
  metadata: pairs,
  created_from_ms: milliseconds,
  created_to_ms: milliseconds,
};

/** Returns the conditions of a filter. An operator who names no tenant sees all tenants. */
export function usualQuery(
  filter: Search<typeof USUAL>,
  access: Parameters<typeof tenantOfList>[1],
) {
  const { text, app, graph, failure } = filter;
  const tenant = tenantOfList(filter.tenant, access);
  const metadata = jsonOf(filter.metadata);
  const created_from_ms = numberOf(filter.created_from_ms);
  const created_to_ms = numberOf(filter.created_to_ms);
  return given({ text, app, graph, failure, tenant, metadata, created_from_ms, created_to_ms });
}
