// The place of the studio on its origin: the base of the entry document. A proxy may add a prefix.

/** Returns the path below which the routes of the studio are, with a `/` at its end. */
export function basepath(): string {
  return new URL(document.baseURI).pathname.replace(/[^/]*$/, "");
}

/** Returns the address above `/api/v1`, with a `/` at its end. */
export function hostAddress(): string {
  return new URL("..", document.baseURI).href;
}

/** Returns a route such as `/threads?status=error` as a path of the origin. */
export function publicPath(route: string): string {
  return basepath() + route.replace(/^\/+/, "");
}

/**
 * Returns the address of a path that the host names, such as that of an app's page. Returns
 * `undefined` for an address of another origin.
 */
export function hostPath(path: string): string | undefined {
  if (!/^\/(?![/\\])/.test(path)) return undefined;
  return new URL(path.slice(1), hostAddress()).href;
}

/**
 * Replaces an address outside of the base by the base. The host serves the entry document at its
 * root, too, if no app is there.
 */
export function enterBase(): void {
  if (location.pathname.startsWith(basepath())) return;
  history.replaceState(null, "", basepath() + location.search);
}
