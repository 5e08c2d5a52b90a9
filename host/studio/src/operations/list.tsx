// What the lists of this view have in common.
import { Button } from "@wattle/page";
import type { ReactNode } from "react";
import { Reading } from "../shell/failure.tsx";
import styles from "./operations.module.css";
import type { PagedList } from "./read.ts";
import { TEXTS } from "./texts.ts";

interface PagedProps<T> {
  list: PagedList<T>;
  /** Shown if there are no rows. */
  none: string;
  children: (rows: readonly T[]) => ReactNode;
}

/** The rows of a list, and the way to further ones. */
export function Paged<T>({ list, none, children }: PagedProps<T>) {
  const { rows, isComplete, isReading, error, retry, more } = list;
  return (
    <>
      <Reading of={{ error, data: rows, refetch: retry }} tenantNeeded={TEXTS.tenantNeeded} />
      {rows?.length === 0 && <p>{none}</p>}
      {rows !== undefined && rows.length > 0 && children(rows)}
      {rows !== undefined && !isComplete && (
        <p className={styles.more}>
          <Button onClick={more} busy={isReading}>
            {TEXTS.more}
          </Button>
        </p>
      )}
    </>
  );
}
