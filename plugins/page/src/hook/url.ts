// The URL of the page, which the page changes without a reload.
import { useSyncExternalStore } from "react";

/** The event of browsers for their own navigation. Here it reports that of the page as well. */
const MOVED = "popstate";

function watch(watcher: () => void): () => void {
  addEventListener(MOVED, watcher);
  return () => removeEventListener(MOVED, watcher);
}

/** Navigates within the page. */
export function navigate(href: string): void {
  history.pushState(null, "", href);
  dispatchEvent(new Event(MOVED));
}

/** Replaces the URL without an entry in the history. */
export function replaceUrl(href: string): void {
  history.replaceState(null, "", href);
  dispatchEvent(new Event(MOVED));
}

/** Returns what `read` finds in the URL, such as a parameter. A navigation renders again. */
export function useUrl<T extends string | undefined>(read: () => T): T {
  return useSyncExternalStore(watch, read);
}

/** Returns a parameter of the query; `undefined` if the URL does not have it. */
export function parameter(name: string): string | undefined {
  return new URL(location.href).searchParams.get(name) ?? undefined;
}

/** Returns the URL with a parameter in its query, or without it if `value` is `undefined`. */
export function withParameter(name: string, value: string | undefined): string {
  const url = new URL(location.href);
  if (value === undefined) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  return url.href;
}
