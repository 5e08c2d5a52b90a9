// The filters of the list of runs.
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { ALL } from "../part/filters/options.ts";
import { FurtherFields, UsualFields } from "../part/filters/usual-fields.tsx";
import { runsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, type RunsFilter, STATUSES } from "./filter.ts";
import { TEXTS } from "./texts.ts";

type Key = keyof RunsFilter;

/** The choices of a status. */
const STATUS_OPTIONS = [ALL, ...STATUSES.map((value) => ({ value, name: value }))];

/** The parameters whose fields are hidden at first. */
const MORE: readonly Key[] = ["graph", "failure", "created_from_ms", "created_to_ms"];

export function RunsFilters({ filter }: { filter: RunsFilter }) {
  const go = useGo();
  const set = (key: Key) => (value: string) =>
    go(runsRoute(withValue(filter, FILTER, key, value)), { replace: true });
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? runsRoute() : undefined}
      count={MORE.filter((key) => filter[key] !== undefined).length}
      more={<More filter={filter} set={set} />}
    >
      <UsualFields filter={filter} set={set} textHint={TEXTS.textHint} statuses={STATUS_OPTIONS} />
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
