// A link from a list of the threads of several tenants.
import type { ReactNode } from "react";
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { RouteLink } from "../router/links.tsx";

interface ThreadLinkProps {
  /** The route of a view of the thread. */
  to: string;
  /** The tenant of the thread. */
  tenant: string | null | undefined;
  children: ReactNode;
}

/** A link to a view of a thread, or its text alone if no request can reach the thread. */
export function ThreadLink({ to, tenant, children }: ThreadLinkProps) {
  const access = useAccess();
  // On a host with tenants, a request about a thread names a tenant, and this thread has none.
  const isReachable = tenant != null || !choosesTenant(access);
  return isReachable ? <RouteLink to={to}>{children}</RouteLink> : children;
}
