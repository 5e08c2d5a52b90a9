// The access of the studio, which is shown once the host says who is asking, and the login before.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Shell } from "@wattle/page";
import { createContext, type ReactNode, useContext, useEffect, useSyncExternalStore } from "react";
import { api, ok } from "../api/client.ts";
import { Reading } from "../shell/failure.tsx";
import { askKey, credentials, noteTenantHeader, watchCredentials } from "./key.ts";
import { Login } from "./login.tsx";
import { type Access, may, type Need } from "./scope.ts";
import { TEXTS } from "./texts.ts";
import { missingIn } from "./unauthorized.ts";

const AccessContext = createContext<Access | undefined>(undefined);

/** Returns the access of this tab. */
export function useAccess(): Access {
  const access = useContext(AccessContext);
  if (access === undefined) throw new Error("there is no `AccessGate` around this part");
  return access;
}

interface GuardedProps {
  need: Need;
  children: ReactNode;
  /** What is shown in place of the children. */
  otherwise?: ReactNode;
}

/** Shows its children only if the access permits them. The host checks each request in any case. */
export function Guarded({ need, children, otherwise = null }: GuardedProps) {
  return may(useAccess(), need) ? children : otherwise;
}

/** Provides an access, which tests set by themselves. */
export function AccessProvider({ access, children }: { access: Access; children: ReactNode }) {
  return <AccessContext value={access}>{children}</AccessContext>;
}

/** Shows its children with the access of this tab, or what is missing for it. */
export function AccessGate({ children }: { children: ReactNode }) {
  const { version } = useSyncExternalStore(watchCredentials, credentials);
  const client = useQueryClient();
  const read = useQuery({
    queryKey: ["access", version],
    queryFn: readAccess,
    // A user who comes back with a key from elsewhere finds the form as it was.
    refetchOnWindowFocus: false,
  });
  const { data, error } = read;
  useEffect(() => {
    // What was read with other credentials is not shown under these.
    client.removeQueries({ predicate: ({ queryKey }) => !isOf(queryKey, version) });
  }, [client, version]);
  if (data !== undefined) return <AccessProvider access={data}>{children}</AccessProvider>;
  const missing = missingIn(error);
  if (missing !== undefined) return <Login missing={missing} />;
  return (
    <Shell title={TEXTS.studio}>
      <Reading of={read} text={TEXTS.reading} />
    </Shell>
  );
}

function isOf([name, version]: readonly unknown[], current: number): boolean {
  return name === "access" && version === current;
}

async function readAccess(): Promise<Access> {
  try {
    const access = await ok(api.GET("/api/v1/access"));
    noteTenantHeader(access.tenant_header ?? null);
    return access;
  } catch (error) {
    // The key of another tab changes the credentials, with which the access is read again. After a
    // refusal, the other tabs have only the refused key.
    const { key, refusal } = credentials();
    const isNew = key === null && refusal === null;
    if (isNew && missingIn(error)?.what === "key") await askKey();
    throw error;
  }
}
