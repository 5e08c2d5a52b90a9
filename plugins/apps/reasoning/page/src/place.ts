// The session in the address of the page: `#session=<id>`.

/** The session that a fragment names. */
export function sessionIn(hash: string): string | null {
  return new URLSearchParams(hash.replace(/^#/, "")).get("session") || null;
}

/** The address with a session, or without one. It is whole, since the document has a base. */
export function withSession(id: string | null): string {
  const fragment = id === null ? "" : `#session=${encodeURIComponent(id)}`;
  return location.origin + location.pathname + location.search + fragment;
}
