// The filter of the inbox and the selected interrupt, which are in the address of the view.
import { name, readSearch, type Search, writeSearch } from "../router/search.ts";
import type { InboxItem } from "./item.ts";

/** The search parameters of the view. `of` is the tenant of the selected interrupt. */
export const FILTER = { app: name, tenant: name, thread: name, interrupt: name, of: name };

export type InboxFilter = Search<typeof FILTER>;

/** Returns the filter with another condition, or without it, and without the selected interrupt. */
export function withCondition(
  filter: InboxFilter,
  key: "app" | "tenant",
  value: string,
): InboxFilter {
  const { app, tenant } = filter;
  return readSearch(writeSearch({ app, tenant, [key]: value }), FILTER);
}

/** Returns the filter with a selected item, or without one. */
export function withItem(filter: InboxFilter, item: InboxItem | undefined): InboxFilter {
  const { app, tenant } = filter;
  const selected = item && {
    thread: item.thread_id,
    interrupt: item.interrupt.id,
    of: item.tenant ?? undefined,
  };
  return readSearch(writeSearch({ app, tenant, ...selected }), FILTER);
}

/** Returns the key of an item. Two threads may have interrupts with the same id. */
export function keyOf({ thread_id, interrupt }: InboxItem): string {
  return keyIn(thread_id, interrupt.id);
}

/** Returns the key of an interrupt of a thread. */
export function keyIn(thread: string, interrupt: string): string {
  return JSON.stringify([thread, interrupt]);
}
