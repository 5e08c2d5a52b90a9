// Prevents double submission.
import { useCallback, useRef, useState } from "react";

/**
 * Runs `work` at most once at a time: a call while it runs does nothing. Returns the guarded
 * function, and true while it runs. The guard takes effect with the call itself, before React
 * renders.
 */
export function useOnce<A extends unknown[]>(
  work: (...args: A) => Promise<unknown>,
): [(...args: A) => Promise<void>, boolean] {
  const busy = useRef(false);
  const latest = useRef(work);
  latest.current = work;
  const [isBusy, setBusy] = useState(false);
  const run = useCallback(async (...args: A) => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    try {
      await latest.current(...args);
    } finally {
      busy.current = false;
      setBusy(false);
    }
  }, []);
  return [run, isBusy];
}
