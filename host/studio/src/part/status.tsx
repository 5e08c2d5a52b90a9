// The status of a thread or a run.
import styles from "./part.module.css";
import { visible } from "./text.tsx";

/** A status as the host names it. The color is no more than the name says. */
export function Status({ name }: { name: string }) {
  return (
    <span className={styles.status} data-status={name}>
      {visible(name)}
    </span>
  );
}
