// Parts of a page that the first view does not need.
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

/** Maximum wait for an idle browser, in milliseconds. */
const LONGEST_WAIT_MS = 2_000;

/**
 * Returns a component that is loaded after the first view, when the browser is idle. `lazy` alone
 * loads it when it is first shown: if the server is not reachable at that moment, the load fails,
 * and browsers remember the failure.
 */
export function later<Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  const loadEarly = () => {
    // The part itself shows the failure when it is rendered.
    load().catch(() => undefined);
  };
  if ("requestIdleCallback" in window) {
    window.requestIdleCallback(loadEarly, { timeout: LONGEST_WAIT_MS });
  } else {
    setTimeout(loadEarly, LONGEST_WAIT_MS);
  }
  return lazy(load);
}
