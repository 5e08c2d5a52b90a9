// Where in the page a user is: at its start, or at a session. The host serves the same document at
// both, and says by the document's base where the app is.
import { address } from "@wattle/page";
import { useSyncExternalStore } from "react";

export type Route = { at: "home" } | { at: "session"; id: string; initial: string | undefined };

const SESSION = /^session\/([^/]+)\/?$/;

/** The route of an address below a base. */
export function routeOf(href: string, base: string): Route {
  const url = new URL(href);
  const prefix = new URL(base).pathname;
  const path = url.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : "";
  const id = SESSION.exec(path)?.[1];
  if (id === undefined) return { at: "home" };
  const initial = url.searchParams.get("initial")?.trim();
  return { at: "session", id: decodeURIComponent(id), initial: initial || undefined };
}

/** The address of a session, which is what a user shares. */
export function sessionAddress(id: string, initial?: string): string {
  const url = new URL(address(`session/${encodeURIComponent(id)}`));
  if (initial !== undefined) url.searchParams.set("initial", initial);
  return url.href;
}

const watchers = new Set<() => void>();

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  addEventListener("popstate", watcher);
  return () => {
    watchers.delete(watcher);
    removeEventListener("popstate", watcher);
  };
}

function moved(): void {
  for (const watcher of [...watchers]) watcher();
}

/** Goes elsewhere in the page. */
export function go(href: string): void {
  history.pushState(null, "", href);
  moved();
}

/** Names the same place in another way. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  moved();
}

/** The route now. */
export function useRoute(): Route {
  const href = useSyncExternalStore(watch, () => location.href);
  return routeOf(href, document.baseURI);
}
