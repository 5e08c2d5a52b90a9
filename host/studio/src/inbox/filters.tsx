// The filters of the inbox. They are in the address, so that a link shows the same list.
import { SelectField, TextField } from "@wattle/page";
import { type FormEvent, useRef, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { useApps } from "../api/apps.ts";
import { optionsOf } from "../part/options.ts";
import { inboxRoute, useGo } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { type InboxFilter, withValue } from "./filter.ts";
import styles from "./inbox.module.css";
import { TEXTS } from "./texts.ts";

/** The filters, each of which has an effect at once. */
export function InboxFilters({ filter }: { filter: InboxFilter }) {
  const access = useAccess();
  const { data = [] } = useApps();
  const box = useRef<HTMLElement>(null);
  const go = useGo();
  useShortcut("/", TEXTS.focusFilters, () => {
    box.current?.querySelector<HTMLElement>("select, input")?.focus();
  });
  const set = (key: "app" | "tenant") => (value: string) =>
    go(inboxRoute(withValue(filter, key, value)), { replace: true });
  const apps = data.map(({ name }) => name);
  return (
    <section ref={box} className={styles.filters} aria-label={TEXTS.filters}>
      <SelectField
        label={TEXTS.app}
        value={filter.app ?? ""}
        onChange={set("app")}
        options={optionsOf(TEXTS.all, apps, filter.app)}
      />
      {choosesTenant(access) && (
        <TenantFilter key={filter.tenant ?? ""} filter={filter} onTenant={set("tenant")} />
      )}
    </section>
  );
}

interface TenantFilterProps {
  filter: InboxFilter;
  onTenant: (name: string) => void;
}

/** The tenant, which has an effect when it is complete. */
function TenantFilter({ filter, onTenant }: TenantFilterProps) {
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
