// The filters of the list of runs.
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { statusOptions } from "../part/filters/options.ts";
import { FurtherFields, UsualFields } from "../part/filters/usual-fields.tsx";
import { runsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, type RunsFilter, type RunsQuery, STATUSES } from "./filter.ts";
import { useCounts } from "./read.ts";
import { TEXTS } from "./texts.ts";

type Key = keyof RunsFilter;

/** The parameters whose fields are hidden at first. */
const MORE: readonly Key[] = ["graph", "failure", "metadata", "created_from_ms", "created_to_ms"];

/** The filters. `query` has the conditions of this filter. */
export function RunsFilters({ filter, query }: { filter: RunsFilter; query: RunsQuery }) {
  const go = useGo();
  const set = (key: Key) => (value: string) =>
    go(runsRoute(withValue(filter, FILTER, key, value)), { replace: true });
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? runsRoute() : undefined}
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

interface MoreProps {
  filter: RunsFilter;
  /** Returns what gives a parameter another value. */
  set: (key: Key) => (value: string) => void;
}

/** The filters that are needed less often. */
function More({ filter, set }: MoreProps) {
  return (
    <>
      <FurtherFields filter={filter} set={set} />
      <TimeField
        label={TEXTS.createdSince}
        value={filter.created_from_ms}
        onValue={set("created_from_ms")}
      />
      <TimeField
        label={TEXTS.createdTo}
        value={filter.created_to_ms}
        onValue={set("created_to_ms")}
      />
    </>
  );
}
