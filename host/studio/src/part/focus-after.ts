// The focus after what a user has opened is closed again.
import { useEffect, useRef } from "react";

/**
 * Moves the focus back to the link of what was shown when nothing is shown any more. `selector`
 * finds the link; it is `undefined` while nothing is shown.
 */
export function useFocusAfter(selector: string | undefined): void {
  const before = useRef<string>(undefined);
  useEffect(() => {
    const left = selector === undefined ? before.current : undefined;
    before.current = selector;
    if (left !== undefined) document.querySelector<HTMLElement>(left)?.focus();
  }, [selector]);
}

/** Selects the link of a row, which has the number of the row as its `data-seq`. */
export function rowLink(seq: number | undefined): string | undefined {
  return seq === undefined ? undefined : `a[data-seq="${seq}"]`;
}
