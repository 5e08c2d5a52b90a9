// The filters that several lists have.
import { SelectField } from "@wattle/page";
import { useAccess } from "../../access/access.tsx";
import { choosesTenant } from "../../access/tenant.ts";
import { type Check, name } from "../../router/search.ts";
import type { Option } from "../options.ts";
import { visible } from "../text.tsx";
import { words } from "./conditions.ts";
import { FilterField } from "./field.tsx";
import { Filters, TimeField, type TimeFieldProps } from "./filters.tsx";
import { METADATA_CHARS, readPairs } from "./metadata.ts";
import { useAppOptions, useGraphOptions } from "./options.ts";
import { TEXTS } from "./texts.ts";

type Key = "text" | "status" | "app" | "graph" | "tenant" | "failure" | "metadata";

/** The parameters whose fields are hidden at first, in addition to the times. */
const MORE: readonly Key[] = ["graph", "failure", "metadata"];

interface FieldsProps {
  filter: Partial<Readonly<Record<Key, string | undefined>>>;
  /** Returns what gives a parameter another value. */
  set: (key: Key) => (value: string) => void;
}

interface UsualFieldsProps extends FieldsProps {
  /** What the text is looked for in. */
  textHint: string;
  statuses: readonly Option[];
}

interface UsualFiltersProps extends UsualFieldsProps {
  /** Route of the list without a filter. */
  cleared: string;
  /** The times that limit the list. */
  times: readonly TimeFieldProps[];
}

/** The filters of a list of threads or runs. */
export function UsualFilters({ cleared, times, ...usual }: UsualFiltersProps) {
  const { filter, set } = usual;
  const values = [...MORE.map((key) => filter[key]), ...times.map(({ value }) => value)];
  return (
    <Filters
      cleared={Object.keys(filter).length > 0 ? cleared : undefined}
      count={values.filter((value) => value !== undefined).length}
      more={
        <>
          <FurtherFields filter={filter} set={set} />
          {times.map((time) => (
            <TimeField key={time.label} {...time} />
          ))}
        </>
      }
    >
      <UsualFields {...usual} />
    </Filters>
  );
}

/** The filters that are needed often. */
function UsualFields({ filter, set, textHint, statuses }: UsualFieldsProps) {
  return (
    <>
      <FilterField
        label={TEXTS.text}
        type="search"
        placeholder={textHint}
        value={filter.text ?? ""}
        problemOf={tooLongFor(words)}
        onValue={set("text")}
      />
      <SelectField
        label={TEXTS.status}
        value={filter.status ?? ""}
        onChange={set("status")}
        options={statuses}
      />
      <SelectField
        label={TEXTS.app}
        value={filter.app ?? ""}
        onChange={set("app")}
        options={useAppOptions(filter)}
      />
      <TenantField value={filter.tenant} onValue={set("tenant")} />
    </>
  );
}

interface TenantFieldProps {
  value: string | undefined;
  onValue: (value: string) => void;
}

/** The tenant, for who may choose one. */
export function TenantField({ value = "", onValue }: TenantFieldProps) {
  if (!choosesTenant(useAccess())) return null;
  return (
    <FilterField
      label={TEXTS.tenant}
      value={value}
      problemOf={tooLongFor(name)}
      onValue={onValue}
    />
  );
}

/** The filters by graph, failure and metadata, which are needed less often. */
function FurtherFields({ filter, set }: FieldsProps) {
  return (
    <>
      <SelectField
        label={TEXTS.graph}
        value={filter.graph ?? ""}
        onChange={set("graph")}
        options={useGraphOptions(filter)}
      />
      <FilterField
        label={TEXTS.failure}
        value={filter.failure ?? ""}
        problemOf={tooLongFor(words)}
        onValue={set("failure")}
      />
      <FilterField
        label={TEXTS.metadata}
        placeholder={TEXTS.metadataHint}
        value={filter.metadata ?? ""}
        problemOf={pairsProblem}
        onValue={set("metadata")}
      />
    </>
  );
}

function pairsProblem(text: string): string | undefined {
  if (text.length > METADATA_CHARS) return TEXTS.tooLong;
  const read = readPairs(text);
  return "json" in read ? undefined : visible(TEXTS.pairProblem(read.problem));
}

/** Returns what tells whether a parameter cannot have a value, which is then too long. */
function tooLongFor(check: Check): (value: string) => string | undefined {
  return (value) => (check(value) === undefined ? TEXTS.tooLong : undefined);
}
