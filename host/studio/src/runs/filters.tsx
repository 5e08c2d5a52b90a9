// The filters of the list of runs.
import { statusOptions } from "../part/filters/options.ts";
import { UsualFilters } from "../part/filters/usual-fields.tsx";
import { runsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, type RunsFilter, type RunsQuery, STATUSES } from "./filter.ts";
import { useCounts } from "./read.ts";
import { TEXTS } from "./texts.ts";

/** The times that limit the list, with the names of their fields. */
const TIMES = [
  ["created_from_ms", TEXTS.createdSince],
  ["created_to_ms", TEXTS.createdTo],
] as const;

/** The filters. `query` has the conditions of this filter. */
export function RunsFilters({ filter, query }: { filter: RunsFilter; query: RunsQuery }) {
  const go = useGo();
  const set = (key: keyof RunsFilter) => (value: string) =>
    go(runsRoute(withValue(filter, FILTER, key, value)), { replace: true });
  return (
    <UsualFilters
      filter={filter}
      set={set}
      cleared={runsRoute()}
      times={TIMES.map(([key, label]) => ({ label, value: filter[key], onValue: set(key) }))}
      textHint={TEXTS.textHint}
      statuses={statusOptions(STATUSES, useCounts(query))}
    />
  );
}
