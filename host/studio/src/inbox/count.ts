// How many questions are pending, also those on pages that were not read.
import { type QueryClient, useQuery } from "@tanstack/react-query";
import type { List } from "../api/pages.ts";
import { type Conditions, selects } from "./filter.ts";
import type { InboxItem } from "./item.ts";
import { type Count, type ListAccess, readCount } from "./read.ts";
import { TEXTS } from "./texts.ts";

/** First key of the queries of the number. */
const NAME = "inbox-count";

/**
 * Interval at which a visible tab reads the number, in milliseconds. The host reads ten pages of
 * interrupts for it.
 */
const INTERVAL_MS = 10_000;

/** Reads the number as long as pages are missing. A list without further pages has all of them. */
export function useCount(
  list: List<InboxItem>,
  conditions: Conditions,
  access: ListAccess,
): Count | undefined {
  const { data } = useQuery({
    queryKey: countKey(conditions, access),
    queryFn: () => readCount(conditions, access),
    enabled: list.rows !== undefined && !list.isComplete,
    refetchInterval: INTERVAL_MS,
  });
  return list.isComplete ? undefined : data;
}

/** Returns the key of the query of the number. */
export function countKey(conditions: Conditions, access: Pick<ListAccess, "tenant_header">) {
  return [NAME, conditions, access.tenant_header] as const;
}

/** Takes an item off the numbers that include it; the host is not asked for each answer. */
export function takeOff(client: QueryClient, item: InboxItem): void {
  client.setQueriesData<Count>(
    {
      queryKey: [NAME],
      predicate: ({ queryKey }) => selects(queryKey[1] as Conditions, item),
    },
    (count) => count && oneLess(count),
  );
}

/** Returns a number without an item, if the conditions of the number select it. */
export function withoutItem(count: Count, conditions: Conditions, item: InboxItem): Count {
  return selects(conditions, item) ? oneLess(count) : count;
}

/** Returns a number without one interrupt. The host may have counted before it was asked. */
function oneLess(count: Count): Count {
  return { ...count, total: Math.max(count.total - 1, 0) };
}

/** Returns the number as a text, of the rows of a list and the number on the host. */
export function numberText(rows: number, isComplete: boolean, count: Count | undefined): string {
  if (isComplete) return String(rows);
  if (count?.is_complete === true) return String(count.total);
  return TEXTS.orMore(Math.max(rows, count?.total ?? 0));
}
