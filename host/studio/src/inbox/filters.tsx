// The filters of the inbox. They are in the address, so that a link shows the same list.
import { SelectField } from "@wattle/page";
import { useRef } from "react";
import { useAppOptions, useGraphOptions } from "../part/filters/options.ts";
import { TenantField } from "../part/filters/usual-fields.tsx";
import { inboxRoute, useGo } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { type Conditions, type InboxFilter, withCondition } from "./filter.ts";
import styles from "./inbox.module.css";
import { TEXTS } from "./texts.ts";

/** The filters, each of which has an effect at once. */
export function InboxFilters({ filter }: { filter: InboxFilter }) {
  const box = useRef<HTMLElement>(null);
  const go = useGo();
  useShortcut("/", TEXTS.focusFilters, () => {
    box.current?.querySelector<HTMLElement>("select, input")?.focus();
  });
  const set = (key: keyof Conditions) => (value: string) =>
    go(inboxRoute(withCondition(filter, key, value)), { replace: true });
  return (
    <section ref={box} className={styles.filters} aria-label={TEXTS.filters}>
      <SelectField
        label={TEXTS.app}
        value={filter.app ?? ""}
        onChange={set("app")}
        options={useAppOptions(filter)}
      />
      <SelectField
        label={TEXTS.graphOnly}
        value={filter.graph ?? ""}
        onChange={set("graph")}
        options={useGraphOptions(filter)}
      />
      <TenantField value={filter.tenant} onValue={set("tenant")} />
    </section>
  );
}
