// A section of a view or a panel.
import type { ReactNode } from "react";
import styles from "./part.module.css";

interface SectionProps {
  title: string;
  /** What is beside the title. */
  note?: string | undefined;
  /** Level of the title: `h4` in a panel, `h3` directly in a view. */
  heading?: "h3" | "h4";
  children: ReactNode;
}

/** A section with its title. */
export function Section({ title, note, heading: Heading = "h4", children }: SectionProps) {
  return (
    <section className={styles.section} aria-label={title}>
      <Heading>
        {title} {note !== undefined && <small>{note}</small>}
      </Heading>
      {children}
    </section>
  );
}
