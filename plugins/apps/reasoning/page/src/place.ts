// The session in the URL of the page: `#session=<id>`.

/** Returns the session in a URL fragment. */
export function sessionIn(hash: string): string | null {
  return new URLSearchParams(hash.replace(/^#/, "")).get("session") || null;
}

/**
 * Returns the URL with a session, or without one. It is absolute, because the document has a base
 * URL.
 */
export function withSession(id: string | null): string {
  const fragment = id === null ? "" : `#session=${encodeURIComponent(id)}`;
  return location.origin + location.pathname + location.search + fragment;
}
