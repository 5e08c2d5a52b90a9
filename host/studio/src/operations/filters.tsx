// The filters of this view. They are in the address, so that a link shows the same.
import { SelectField } from "@wattle/page";
import type { ReactNode } from "react";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { useAppOptions } from "../part/filters/options.ts";
import { TenantField } from "../part/filters/usual-fields.tsx";
import { operationsRoute, useGo } from "../router/links.tsx";
import { withValue } from "../router/search.ts";
import { FILTER, type OperationsFilter } from "./filter.ts";
import styles from "./operations.module.css";
import { TEXTS } from "./texts.ts";

interface FilterProps {
  filter: OperationsFilter;
}

/** Returns a function that sets a value of the filter. */
export function useSet(filter: OperationsFilter) {
  const go = useGo();
  return (key: keyof OperationsFilter) => (value: string) =>
    go(operationsRoute(withValue(filter, FILTER, key, value)), { replace: true });
}

/** The filters of a part: its own ones, and the tenant for who may choose one. */
export function Filters({ filter, children }: FilterProps & { children?: ReactNode }) {
  const hasTenants = choosesTenant(useAccess());
  const set = useSet(filter);
  if (children === undefined && !hasTenants) return null;
  return (
    <section className={styles.filters} aria-label={TEXTS.filters}>
      {children}
      <TenantField value={filter.tenant} onValue={set("tenant")} />
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
