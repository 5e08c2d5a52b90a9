// The filters of the list of threads.
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { statusOptions } from "../part/filters/options.ts";
import { FurtherFields, UsualFields } from "../part/filters/usual-fields.tsx";
import { threadsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, STATUSES, type ThreadFilter, type ThreadQuery } from "./filter.ts";
import { useCounts } from "./read.ts";
import { TEXTS } from "./texts.ts";

type Key = keyof ThreadFilter;

interface PartProps {
  filter: ThreadFilter;
  /** Returns what gives a parameter another value. */
  set: (key: Key) => (value: string) => void;
}

/** The times that limit the list, with the names of their fields. */
const TIMES = [
  ["created_from_ms", TEXTS.createdSince],
  ["created_to_ms", TEXTS.createdTo],
  ["updated_from_ms", TEXTS.updatedSince],
  ["updated_to_ms", TEXTS.updatedTo],
] as const;

/** The parameters whose fields are hidden at first. */
const MORE: readonly Key[] = ["graph", "failure", "metadata", ...TIMES.map(([key]) => key)];

/** The filters. `query` has the conditions of this filter. */
export function ThreadFilters({ filter, query }: { filter: ThreadFilter; query: ThreadQuery }) {
  const go = useGo();
  const set = (key: Key) => (value: string) =>
    go(threadsRoute(withValue(filter, FILTER, key, value)), { replace: true });
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? threadsRoute() : undefined}
      count={MORE.filter((key) => filter[key] !== undefined).length}
      more={<More filter={filter} set={set} />}
    >
      <UsualFields
        filter={filter}
        set={set}
        textHint={TEXTS.textHint}
        statuses={statusOptions(STATUSES, useCounts(query))}
      />
    </Filters>
  );
}

/** The filters that are needed less often. */
function More({ filter, set }: PartProps) {
  return (
    <>
      <FurtherFields filter={filter} set={set} />
      {TIMES.map(([key, label]) => (
        <TimeField key={key} label={label} value={filter[key]} onValue={set(key)} />
      ))}
    </>
  );
}
