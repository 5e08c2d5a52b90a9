// The filters of the list of threads.
import { SelectField } from "@wattle/page";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { FilterField } from "../part/filters/field.tsx";
import { Filters, TimeField } from "../part/filters/filters.tsx";
import { ALL, useAppOptions, useGraphOptions } from "../part/filters/options.ts";
import { TEXTS as FILTERS } from "../part/filters/texts.ts";
import type { Option } from "../part/options.ts";
import { visible } from "../part/text.tsx";
import { threadsRoute, useGo } from "../router/links.tsx";
import {
  METADATA_CHARS,
  STATUSES,
  type ThreadFilter,
  type ThreadQuery,
  withValue,
} from "./filter.ts";
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
  const access = useAccess();
  const go = useGo();
  const set = (key: Key) => (value: string) =>
    go(threadsRoute(withValue(filter, key, value)), { replace: true });
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? threadsRoute() : undefined}
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
        options={useStatusOptions(query)}
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

/** The filters that are needed less often. */
function More({ filter, set }: PartProps) {
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

/** Returns what tells whether a parameter cannot have a value, which is then too long. */
function tooLong(key: "text" | "tenant" | "failure"): (value: string) => string | undefined {
  return (value) => (withValue({}, key, value)[key] === undefined ? FILTERS.tooLong : undefined);
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
