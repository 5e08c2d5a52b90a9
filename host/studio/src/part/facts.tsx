// Facts with their names.
import type { ReactNode } from "react";
import styles from "./part.module.css";

/** A fact. One without a value is not shown. */
export type Fact = readonly [name: string, value: ReactNode];

/** A list of facts, in as many columns as there is room for. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== null);
  return (
    <dl className={styles.facts}>
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
