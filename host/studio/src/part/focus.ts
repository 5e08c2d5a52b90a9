// Where the focus goes when what had it is closed.
import { useEffect, useRef } from "react";

/**
 * Moves the focus back to the link of a row when the panel of the row was closed. The link has the
 * number of the row as its `data-seq`.
 */
export function useFocusAfter(seq: number | undefined): void {
  const before = useRef<number>(undefined);
  useEffect(() => {
    const left = seq === undefined ? before.current : undefined;
    before.current = seq;
    if (left === undefined) return;
    document.querySelector<HTMLElement>(`a[data-seq="${left}"]`)?.focus();
  }, [seq]);
}
