// The filters of the list of threads.
import { FilterField } from "../part/filters/field.tsx";
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { ALL } from "../part/filters/options.ts";
import { TEXTS as FILTERS } from "../part/filters/texts.ts";
import { FurtherFields, UsualFields } from "../part/filters/usual-fields.tsx";
import type { Option } from "../part/options.ts";
import { visible } from "../part/text.tsx";
import { threadsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, METADATA_CHARS, STATUSES, type ThreadFilter, type ThreadQuery } from "./filter.ts";
import { readPairs } from "./metadata.ts";
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
        statuses={useStatusOptions(query)}
      />
    </Filters>
  );
}

/** The filters that are needed less often. */
function More({ filter, set }: PartProps) {
  return (
    <>
      <FurtherFields filter={filter} set={set} />
      <FilterField
        label={TEXTS.metadata}
        placeholder={TEXTS.metadataHint}
        value={filter.metadata ?? ""}
        problemOf={pairsProblem}
        onValue={set("metadata")}
      />
      {TIMES.map(([key, label]) => (
        <TimeField key={key} label={label} value={filter[key]} onValue={set(key)} />
      ))}
    </>
  );
}

function pairsProblem(text: string): string | undefined {
  if (text.length > METADATA_CHARS) return FILTERS.tooLong;
  const read = readPairs(text);
  return "json" in read ? undefined : visible(TEXTS.pairProblem(read.problem));
}

/** Returns the statuses, each with the number of threads that it would show. */
function useStatusOptions(query: ThreadQuery): Option[] {
  const counts = useCounts(query);
  const named = (name: string, count: number | undefined) =>
    counts === undefined || count === undefined
      ? name
      : TEXTS.counted(name, count, counts.is_complete);
  const statuses = STATUSES.map((value) => ({
    value,
    name: named(value, counts?.by_status[value]),
  }));
  return [{ ...ALL, name: named(ALL.name, counts?.total) }, ...statuses];
}
