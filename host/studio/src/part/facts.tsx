// Facts with their names.
import type { ReactNode } from "react";
import styles from "./part.module.css";
import { Text } from "./text.tsx";
import { Time } from "./time.tsx";

/** A fact. One without a value is not shown. */
export type Fact = readonly [name: string, value: ReactNode];

/** Returns a time as a fact, which is left out if there is none. */
export function timeFact(ms: number | null | undefined): ReactNode {
  return ms == null ? undefined : <Time ms={ms} />;
}

/** Returns a text of a stranger as a fact, which is left out if it is absent or empty. */
export function textFact(text: string | null | undefined): ReactNode {
  return text == null || text === "" ? undefined : <Text>{text}</Text>;
}

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
