// The route of a page: its start, or a session. The host serves the same document for both, and the
// base URL of the document is that of the app.
import { address, useUrl } from "@wattle/page";

export type Route = { at: "home" } | { at: "session"; id: string; initial: string | undefined };

const SESSION = /^session\/([^/]+)\/?$/;

/** Returns the route of a URL below a base URL. */
export function routeOf(href: string, base: string): Route {
  const url = new URL(href);
  const prefix = new URL(base).pathname;
  const path = url.pathname.startsWith(prefix) ? url.pathname.slice(prefix.length) : "";
  const id = SESSION.exec(path)?.[1];
  if (id === undefined) return { at: "home" };
  const initial = url.searchParams.get("initial")?.trim();
  return { at: "session", id: decodeURIComponent(id), initial: initial || undefined };
}

/** Returns the URL of a session, which users share. */
export function sessionAddress(id: string, initial?: string): string {
  const url = new URL(address(`session/${encodeURIComponent(id)}`));
  if (initial !== undefined) url.searchParams.set("initial", initial);
  return url.href;
}

/** Returns the current route. */
export function useRoute(): Route {
  const href = useUrl(() => location.href);
  return routeOf(href, document.baseURI);
}
