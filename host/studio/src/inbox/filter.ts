// The filter of the inbox and the selected interrupt, which are in the address of the view.
import { ALL_TENANTS } from "../access/tenant.ts";
import { given } from "../api/given.ts";
import { name, readSearch, type Search, writeSearch } from "../router/search.ts";
import type { InboxItem } from "./item.ts";

/** The search parameters of the view. `of` is the tenant of the selected interrupt. */
export const FILTER = {
  app: name,
  graph: name,
  tenant: name,
  thread: name,
  interrupt: name,
  of: name,
};

export type InboxFilter = Search<typeof FILTER>;

/** The part of a filter that selects the questions of the list. */
export type Conditions = Pick<InboxFilter, "app" | "graph" | "tenant">;

/** Returns the conditions of a filter, without the selected interrupt. */
export function conditionsOf({ app, graph, tenant }: InboxFilter): Conditions {
  return given({ app, graph, tenant });
}

/** Returns true if conditions select an item. */
export function selects({ app, graph, tenant }: Conditions, item: InboxItem): boolean {
  const pairs = [
    [app, item.app],
    [graph, item.graph],
    [tenant === ALL_TENANTS ? undefined : tenant, item.tenant],
  ] as const;
  return pairs.every(([wanted, value]) => wanted === undefined || wanted === value);
}

/** Returns the filter with another condition, or without it, and without the selected interrupt. */
export function withCondition(
  filter: InboxFilter,
  key: keyof Conditions,
  value: string,
): InboxFilter {
  return readSearch(writeSearch({ ...conditionsOf(filter), [key]: value }), FILTER);
}

/** Returns the filter with a selected item, or without one. */
export function withItem(filter: InboxFilter, item: InboxItem | undefined): InboxFilter {
  const selected = item && {
    thread: item.thread_id,
    interrupt: item.interrupt.id,
    of: item.tenant ?? undefined,
  };
  return readSearch(writeSearch({ ...conditionsOf(filter), ...selected }), FILTER);
}

/** Returns the key of an item. Two threads may have interrupts with the same id. */
export function keyOf({ thread_id, interrupt }: InboxItem): string {
  return keyIn(thread_id, interrupt.id);
}

/** Returns the key of an interrupt of a thread. */
export function keyIn(thread: string, interrupt: string): string {
  return JSON.stringify([thread, interrupt]);
}
