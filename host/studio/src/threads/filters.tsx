// The filters of the list of threads. They are in the address, so that a link shows the same list.
import { SelectField, TextField } from "@wattle/page";
import { type FormEvent, useRef, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { useApps } from "../api/apps.ts";
import { RouteLink, threadsRoute, useGo } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { STATUSES, type ThreadFilter, withValue } from "./filter.ts";
import { TEXTS } from "./texts.ts";
import styles from "./threads.module.css";

interface FiltersProps {
  filter: ThreadFilter;
}

/** The filters, each of which has an effect at once. */
export function ThreadFilters({ filter }: FiltersProps) {
  const { is_operator, tenant_header } = useAccess();
  const box = useRef<HTMLElement>(null);
  const go = useGo();
  useShortcut("/", TEXTS.focusFilters, () => {
    box.current?.querySelector<HTMLElement>("select, input")?.focus();
  });
  const set = (key: keyof ThreadFilter) => (value: string) =>
    go(threadsRoute(withValue(filter, key, value)), { replace: true });
  const apps = useAppOptions(filter.app);
  const statuses = STATUSES.map((value) => ({ value, name: value }));
  return (
    <section ref={box} className={styles.filters} aria-label={TEXTS.filters}>
      <SelectField
        label={TEXTS.app}
        value={filter.app ?? ""}
        onChange={set("app")}
        options={apps}
      />
      <SelectField
        label={TEXTS.status}
        value={filter.status ?? ""}
        onChange={set("status")}
        options={[{ value: "", name: TEXTS.all }, ...statuses]}
      />
      {is_operator && tenant_header != null && (
        <TenantFilter key={filter.tenant ?? ""} filter={filter} onTenant={set("tenant")} />
      )}
      {Object.keys(filter).length > 0 && (
        <RouteLink to={threadsRoute()} className={styles.clear}>
          {TEXTS.clear}
        </RouteLink>
      )}
    </section>
  );
}

/** Returns the names of the loaded apps, and of the selected one, which may have been removed. */
function useAppOptions(selected: string | undefined): { value: string; name: string }[] {
  const { data = [] } = useApps();
  const names = new Set(data.map(({ name }) => name));
  if (selected !== undefined) names.add(selected);
  const sorted = [...names].sort((one, other) => one.localeCompare(other));
  return [{ value: "", name: TEXTS.all }, ...sorted.map((name) => ({ value: name, name }))];
}

/** The tenant, which has an effect when it is complete. */
function TenantFilter({ filter, onTenant }: FiltersProps & { onTenant: (name: string) => void }) {
  const [name, setName] = useState(filter.tenant ?? "");
  const apply = () => {
    if (name.trim() !== (filter.tenant ?? "")) onTenant(name.trim());
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    apply();
  };
  return (
    <form onSubmit={submit}>
      <TextField
        label={TEXTS.tenant}
        value={name}
        onChange={setName}
        onBlur={apply}
        autoComplete="off"
        spellCheck={false}
      />
    </form>
  );
}
