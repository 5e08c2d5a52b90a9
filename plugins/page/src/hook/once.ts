// Prevents double submission.
import { useRef, useState } from "react";

/**
 * Runs `work` at most once at a time: a call while it runs does nothing. Returns the guarded
 * function, and true while it runs. The guard takes effect with the call itself, before React
 * renders.
 */
export function useOnce<A extends unknown[]>(
  work: (...args: A) => Promise<unknown>,
): [(...args: A) => Promise<void>, boolean] {
  const busy = useRef(false);
  const [isBusy, setBusy] = useState(false);
  const run = async (...args: A) => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    try {
      await work(...args);
    } finally {
      busy.current = false;
      setBusy(false);
    }
  };
  return [run, isBusy];
}
