// What programs keep in a page, and what hostile pages would.
interface Window {
  axe: typeof import("axe-core");
  /** Properties that transitions have changed. */
  moved: Set<string>;
  /** Set by a script that a page must not run. */
  ran?: unknown;
}
