// The filters of a list. They are in the address, so that a link shows the same list.
import { type ReactNode, useRef, useState } from "react";
import { RouteLink } from "../../router/links.tsx";
import { useShortcut } from "../../shell/keys.tsx";
import { FilterField } from "./field.tsx";
import styles from "./filters.module.css";
import { toLocal, toMilliseconds } from "./local-time.ts";
import { TEXTS } from "./texts.ts";

interface FiltersProps {
  /** Route of the list without a filter; `undefined` if no filter has a value. */
  cleared: string | undefined;
  /** Number of values among the further filters. */
  count: number;
  /** Fields that are needed often. */
  children: ReactNode;
  /** Fields that are needed less often. They are shown at first if one has a value. */
  more: ReactNode;
}

/** The fields of the filters. `/` leads to the first one. */
export function Filters({ cleared, count, children, more }: FiltersProps) {
  const box = useRef<HTMLElement>(null);
  const [isOpen, setOpen] = useState(count > 0);
  useShortcut("/", TEXTS.focusFilters, () => {
    box.current?.querySelector<HTMLElement>("input")?.focus();
  });
  return (
    <section ref={box} className={styles.filters} aria-label={TEXTS.filters}>
      <div className={styles.fields}>
        {children}
        {cleared !== undefined && (
          <RouteLink to={cleared} className={styles.clear}>
            {TEXTS.clear}
          </RouteLink>
        )}
      </div>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{TEXTS.more(count)}</summary>
        <div className={`${styles.fields} ${styles.more}`}>{more}</div>
      </details>
    </section>
  );
}

export interface TimeFieldProps {
  label: string;
  /** Milliseconds since 1970. */
  value: string | undefined;
  onValue: (value: string) => void;
}

/** A field of a time that limits a list. */
export function TimeField({ label, value, onValue }: TimeFieldProps) {
  return (
    <FilterField
      label={label}
      type="datetime-local"
      value={value === undefined ? "" : toLocal(value)}
      problemOf={timeProblem}
      onValue={(local) => onValue(toMilliseconds(local) ?? "")}
    />
  );
}

function timeProblem(local: string): string | undefined {
  return toMilliseconds(local) === undefined ? TEXTS.noTime : undefined;
}
