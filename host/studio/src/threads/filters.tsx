// The filters of the list of threads. They are in the address, so that a link shows the same list.
import { SelectField } from "@wattle/page";
import { useRef, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { useApps } from "../api/apps.ts";
import { visible } from "../part/text.tsx";
import { RouteLink, threadsRoute, useGo } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { FilterField } from "./field.tsx";
import {
  METADATA_CHARS,
  STATUSES,
  type ThreadFilter,
  type ThreadQuery,
  withValue,
} from "./filter.ts";
import { toLocal, toMilliseconds } from "./local-time.ts";
import { readPairs } from "./metadata.ts";
import { useCounts } from "./read.ts";
import { TEXTS } from "./texts.ts";
import styles from "./threads.module.css";

type Key = keyof ThreadFilter;

interface Option {
  value: string;
  name: string;
}

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
  const box = useRef<HTMLElement>(null);
  const go = useGo();
  useShortcut("/", TEXTS.focusFilters, () => {
    box.current?.querySelector<HTMLElement>("input")?.focus();
  });
  const set = (key: Key) => (value: string) =>
    go(threadsRoute(withValue(filter, key, value)), { replace: true });
  return (
    <section ref={box} className={styles.filters} aria-label={TEXTS.filters}>
      <div className={styles.fields}>
        <FilterField
          label={TEXTS.text}
          type="search"
          placeholder={TEXTS.textHint}
          value={filter.text ?? ""}
          problemOf={tooLong("text")}
          onValue={set("text")}
        />
        <SelectField
          label={TEXTS.status}
          value={filter.status ?? ""}
          onChange={set("status")}
          options={useStatusOptions(query)}
        />
        <SelectField
          label={TEXTS.app}
          value={filter.app ?? ""}
          onChange={set("app")}
          options={useAppOptions(filter)}
        />
        {choosesTenant(access) && (
          <FilterField
            label={TEXTS.tenant}
            value={filter.tenant ?? ""}
            problemOf={tooLong("tenant")}
            onValue={set("tenant")}
          />
        )}
        {Object.keys(filter).length > 0 && (
          <RouteLink to={threadsRoute()} className={styles.clear}>
            {TEXTS.clear}
          </RouteLink>
        )}
      </div>
      <More filter={filter} set={set} />
    </section>
  );
}

/** The filters that are needed less often. They are shown at first if one has a value. */
function More({ filter, set }: PartProps) {
  const count = MORE.filter((key) => filter[key] !== undefined).length;
  const [isOpen, setOpen] = useState(count > 0);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{TEXTS.more(count)}</summary>
      <div className={`${styles.fields} ${styles.more}`}>
        <SelectField
          label={TEXTS.graph}
          value={filter.graph ?? ""}
          onChange={set("graph")}
          options={useGraphOptions(filter)}
        />
        <FilterField
          label={TEXTS.failure}
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
          <FilterField
            key={key}
            label={label}
            type="datetime-local"
            value={filter[key] === undefined ? "" : toLocal(filter[key])}
            problemOf={timeProblem}
            onValue={(local) => set(key)(toMilliseconds(local) ?? "")}
          />
        ))}
      </div>
    </details>
  );
}

/** Returns what tells whether a parameter cannot have a value, which is then too long. */
function tooLong(key: "text" | "tenant" | "failure"): (value: string) => string | undefined {
  return (value) => (withValue({}, key, value)[key] === undefined ? TEXTS.tooLong : undefined);
}

function pairsProblem(text: string): string | undefined {
  if (text.length > METADATA_CHARS) return TEXTS.tooLong;
  const read = readPairs(text);
  return "json" in read ? undefined : visible(TEXTS.pairProblem(read.problem));
}

function timeProblem(local: string): string | undefined {
  return toMilliseconds(local) === undefined ? TEXTS.noTime : undefined;
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
  return [{ value: "", name: named(TEXTS.all, counts?.total) }, ...statuses];
}

/** Returns the names of the loaded apps, and of the selected one, which may have been removed. */
function useAppOptions({ app }: ThreadFilter): Option[] {
  const { data = [] } = useApps();
  return optionsOf(
    data.map(({ name }) => name),
    app,
  );
}

/** Returns the graphs of the selected app or of all apps, and the selected one. */
function useGraphOptions({ app, graph }: ThreadFilter): Option[] {
  const { data = [] } = useApps();
  const apps = data.filter(({ name }) => app === undefined || app === name);
  return optionsOf(
    apps.flatMap(({ graphs }) => graphs),
    graph,
  );
}

function optionsOf(known: readonly string[], selected: string | undefined): Option[] {
  const names = new Set(selected === undefined ? known : [...known, selected]);
  const sorted = [...names].sort((one, other) => one.localeCompare(other));
  return [
    { value: "", name: TEXTS.all },
    ...sorted.map((name) => ({ value: name, name: visible(name) })),
  ];
}
