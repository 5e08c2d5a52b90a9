// The credentials of this tab: an API key and a tenant, in memory and in `sessionStorage`, which
// outlives a reload. They are in no URL, cookie or log. A new tab asks the other tabs for the key.

export interface Credentials {
  readonly key: string | null;
  /** The tenant that a user named, with the header for it. */
  readonly tenant: string | null;
  readonly tenantHeader: string | null;
  /** Why the host refused the last key. */
  readonly refusal: string | null;
  /** Differs after each change of the credentials. */
  readonly version: number;
}

type Stored = "key" | "tenant" | "tenantHeader";

/** Names in `sessionStorage` and of the channel between tabs. */
const PREFIX = "wattle-studio-";
const CHANNEL = "wattle-studio-key";

/** Time that other tabs have to hand over their key, in milliseconds. They only read memory. */
const HANDOVER_MS = 300;

let held: Credentials = {
  key: stored("key"),
  tenant: stored("tenant"),
  tenantHeader: stored("tenantHeader"),
  refusal: null,
  version: 0,
};
const watchers = new Set<() => void>();

function stored(name: Stored): string | null {
  try {
    return sessionStorage.getItem(PREFIX + name);
  } catch {
    // The browser permits no storage. The value lasts as long as the page.
    return null;
  }
}

function store(name: Stored, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, value);
  } catch {
    // As above.
  }
}

function change(next: Partial<Omit<Credentials, "version">>): void {
  held = { ...held, ...next, version: held.version + 1 };
  for (const name of ["key", "tenant", "tenantHeader"] as const) store(name, held[name]);
  for (const watcher of [...watchers]) watcher();
}

export function credentials(): Credentials {
  return held;
}

export function watchCredentials(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** Returns the key of this tab. */
export function keyOf(): string | null {
  return held.key;
}

/** Sets the key of this tab, or removes it. */
export function setKey(key: string | null): void {
  change({ key, refusal: null });
}

/** Removes a key that the host refused, unless the tab has another one by now. */
export function refuse(key: string, reason: string): void {
  if (held.key === key) change({ key: null, refusal: reason });
}

/** Sets the tenant for which this tab sends its requests. */
export function setTenant(tenantHeader: string, tenant: string | null): void {
  change({ tenant, tenantHeader });
}

/** Notes the header in which requests name their tenant. */
export function noteTenantHeader(tenantHeader: string | null): void {
  if (held.tenantHeader === tenantHeader) return;
  held = { ...held, tenantHeader };
  store("tenantHeader", tenantHeader);
}

/** Returns the headers of every request. */
export function requestHeaders(): Record<string, string> {
  const { key, tenant } = held;
  return { ...(key === null ? {} : { "x-api-key": key }), ...tenantHeaders(tenant) };
}

/** Returns the header that names a tenant, for a request about a thread of this tenant. */
export function tenantHeaders(tenant: string | null | undefined): Record<string, string> {
  const { tenantHeader } = held;
  if (tenantHeader === null || tenant === null || tenant === undefined) return {};
  return { [tenantHeader]: tenant };
}

/** A message between tabs: a question for the key, an answer to it, or the end of the session. */
interface Message {
  kind: "ask" | "key" | "leave";
  id?: string;
  key?: string;
}

/** Answers other tabs that ask for the key, and leaves when another tab does. */
export function offerKey(): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<Message | null>) => {
    if (data?.kind === "ask" && held.key !== null) {
      channel.postMessage({ ...data, kind: "key", key: held.key } satisfies Message);
    }
    if (data?.kind === "leave" && held.key !== null) setKey(null);
  };
  return () => channel.close();
}

/**
 * Asks the other tabs for their key, and takes the first answer. A key that nobody asked for is not
 * taken, so that no page can make a user work under the key of somebody else.
 */
export function askKey(): Promise<boolean> {
  const channel = new BroadcastChannel(CHANNEL);
  const id = `${Date.now()}-${Math.random()}`;
  return new Promise((resolve) => {
    const end = (isFound: boolean) => {
      clearTimeout(timer);
      channel.close();
      resolve(isFound);
    };
    const timer = setTimeout(() => end(false), HANDOVER_MS);
    channel.onmessage = ({ data }: MessageEvent<Message | null>) => {
      if (data?.kind !== "key" || data.id !== id || typeof data.key !== "string") return;
      setKey(data.key);
      end(true);
    };
    channel.postMessage({ kind: "ask", id } satisfies Message);
  });
}

/** Removes the key from all tabs. */
export function leave(): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage({ kind: "leave" } satisfies Message);
  channel.close();
  change({ key: null, tenant: null, refusal: null });
}
