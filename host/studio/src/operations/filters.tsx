// The filters of this view. They are in the address, so that a link shows the same.
import { SelectField, TextField } from "@wattle/page";
import { type FormEvent, type ReactNode, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { useAppOptions } from "../part/filters/options.ts";
import { operationsRoute, useGo } from "../router/links.tsx";
import { type OperationsFilter, withValue } from "./filter.ts";
import styles from "./operations.module.css";
import { TEXTS } from "./texts.ts";

interface FilterProps {
  filter: OperationsFilter;
}

/** Returns a function that sets a value of the filter. */
export function useSet(filter: OperationsFilter) {
  const go = useGo();
  return (key: keyof OperationsFilter) => (value: string) =>
    go(operationsRoute(withValue(filter, key, value)), { replace: true });
}

/** The filters of a part: its own ones, and the tenant for who may choose one. */
export function Filters({ filter, children }: FilterProps & { children?: ReactNode }) {
  const hasTenants = choosesTenant(useAccess());
  if (children === undefined && !hasTenants) return null;
  return (
    <section className={styles.filters} aria-label={TEXTS.filters}>
      {children}
      {hasTenants && <TenantFilter key={filter.tenant ?? ""} filter={filter} />}
    </section>
  );
}

/** The app. */
export function AppFilter({ filter }: FilterProps) {
  const set = useSet(filter);
  return (
    <SelectField
      label={TEXTS.app}
      value={filter.app ?? ""}
      onChange={set("app")}
      options={useAppOptions(filter)}
    />
  );
}

/** The tenant, which has an effect when it is complete. */
function TenantFilter({ filter }: FilterProps) {
  const set = useSet(filter);
  const [name, setName] = useState(filter.tenant ?? "");
  const apply = () => {
    if (name.trim() !== (filter.tenant ?? "")) set("tenant")(name.trim());
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
