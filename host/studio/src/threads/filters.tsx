// The filters of the list of threads.
import { statusOptions } from "../part/filters/options.ts";
import { UsualFilters } from "../part/filters/usual-fields.tsx";
import { threadsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, STATUSES, type ThreadFilter, type ThreadQuery } from "./filter.ts";
import { useCounts } from "./read.ts";
import { TEXTS } from "./texts.ts";

/** The times that limit the list, with the names of their fields. */
const TIMES = [
  ["created_from_ms", TEXTS.createdSince],
  ["created_to_ms", TEXTS.createdTo],
  ["updated_from_ms", TEXTS.updatedSince],
  ["updated_to_ms", TEXTS.updatedTo],
] as const;

/** The filters. `query` has the conditions of this filter. */
export function ThreadFilters({ filter, query }: { filter: ThreadFilter; query: ThreadQuery }) {
  const go = useGo();
  const set = (key: keyof ThreadFilter) => (value: string) =>
    go(threadsRoute(withValue(filter, FILTER, key, value)), { replace: true });
  return (
    <UsualFilters
      filter={filter}
      set={set}
      cleared={threadsRoute()}
      times={TIMES.map(([key, label]) => ({ label, value: filter[key], onValue: set(key) }))}
      textHint={TEXTS.textHint}
      statuses={statusOptions(STATUSES, useCounts(query))}
    />
  );
}
