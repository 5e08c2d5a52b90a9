// A text of several lines, which scrolls if it is long.
import { visible } from "../part/text.tsx";
import styles from "./play.module.css";

/** A text of a stranger, with its name for screen readers. */
export function Words({ label, text }: { label: string; text: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a text, not a set of fields.
    <pre className={styles.text} role="group" aria-label={label} tabIndex={0}>
      {visible(text)}
    </pre>
  );
}
