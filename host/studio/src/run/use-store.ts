// The store of a run, for the parts of a view.
import { useEffect, useState, useSyncExternalStore } from "react";
import type { RunState, RunStore } from "./store.ts";

/** Returns a store, which is read while the part is shown, and its state. */
export function useRunStore(create: () => RunStore): readonly [store: RunStore, state: RunState] {
  const [store] = useState(create);
  const state = useSyncExternalStore(store.watch, store.state);
  useEffect(() => {
    store.start();
    return () => store.stop();
  }, [store]);
  return [store, state];
}
