// A section of a panel.
import type { ReactNode } from "react";
import styles from "./part.module.css";

interface SectionProps {
  title: string;
  /** What is beside the title. */
  note?: string | undefined;
  children: ReactNode;
}

/** A section with its title. */
export function Section({ title, note, children }: SectionProps) {
  return (
    <section className={styles.section} aria-label={title}>
      <h4>
        {title} {note !== undefined && <small>{note}</small>}
      </h4>
      {children}
    </section>
  );
}
