// The filters of the list of runs.
import { SelectField } from "@wattle/page";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { FilterField } from "../part/filters/field.tsx";
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { ALL, useAppOptions, useGraphOptions } from "../part/filters/options.ts";
import { TEXTS as FILTERS } from "../part/filters/texts.ts";
import { runsRoute, useGo } from "../router/links.tsx";
import { type RunsFilter, STATUSES, withValue } from "./filter.ts";
import { TEXTS } from "./texts.ts";

type Key = keyof RunsFilter;

/** The choices of a status. */
const STATUS_OPTIONS = [ALL, ...STATUSES.map((value) => ({ value, name: value }))];

/** The parameters whose fields are hidden at first. */
const MORE: readonly Key[] = ["graph", "failure", "created_from_ms", "created_to_ms"];

export function RunsFilters({ filter }: { filter: RunsFilter }) {
  const access = useAccess();
  const go = useGo();
  const set = (key: Key) => (value: string) =>
    go(runsRoute(withValue(filter, key, value)), { replace: true });
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? runsRoute() : undefined}
      count={MORE.filter((key) => filter[key] !== undefined).length}
      more={<More filter={filter} set={set} />}
    >
      <FilterField
        label={FILTERS.text}
        type="search"
        placeholder={TEXTS.textHint}
        value={filter.text ?? ""}
        problemOf={tooLong("text")}
        onValue={set("text")}
      />
      <SelectField
        label={FILTERS.status}
        value={filter.status ?? ""}
        onChange={set("status")}
        options={STATUS_OPTIONS}
      />
      <SelectField
        label={FILTERS.app}
        value={filter.app ?? ""}
        onChange={set("app")}
        options={useAppOptions(filter)}
      />
      {choosesTenant(access) && (
        <FilterField
          label={FILTERS.tenant}
          value={filter.tenant ?? ""}
          problemOf={tooLong("tenant")}
          onValue={set("tenant")}
        />
      )}
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
      <SelectField
        label={FILTERS.graph}
        value={filter.graph ?? ""}
        onChange={set("graph")}
        options={useGraphOptions(filter)}
      />
      <FilterField
        label={FILTERS.failure}
        value={filter.failure ?? ""}
        problemOf={tooLong("failure")}
        onValue={set("failure")}
      />
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

/** Returns what tells whether a parameter cannot have a value, which is then too long. */
function tooLong(key: "text" | "tenant" | "failure"): (value: string) => string | undefined {
  return (value) => (withValue({}, key, value)[key] === undefined ? FILTERS.tooLong : undefined);
}
