// Parts of a page that the first view does not need.
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

/** Longest wait for an idle moment, in milliseconds. */
const LONGEST_WAIT_MS = 2_000;

/**
 * A component that is loaded after the first view, as soon as the browser is idle. `lazy` alone loads it when it is first
 * shown: where the server is away at that moment the load fails, and browsers remember the failure.
 */
export function later<Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  const loadEarly = () => {
    // Shown later, the part says by itself that it cannot be loaded.
    load().catch(() => undefined);
  };
  if ("requestIdleCallback" in window) {
    window.requestIdleCallback(loadEarly, { timeout: LONGEST_WAIT_MS });
  } else {
    setTimeout(loadEarly, LONGEST_WAIT_MS);
  }
  return lazy(load);
}
