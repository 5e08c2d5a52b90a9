// A view of panels.
import type { ReactNode } from "react";
import styles from "./part.module.css";

/** Panels, one below the other, that scroll together. */
export function Panels({ children }: { children: ReactNode }) {
  return <div className={styles.panels}>{children}</div>;
}
