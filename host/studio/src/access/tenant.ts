// The tenant of a list over the threads of a host.
import type { Access } from "./scope.ts";

/** The tenant of a list of the threads of all tenants. No tenant has this name. */
export const ALL_TENANTS = "*";

type Tenancy = Pick<Access, "is_operator" | "tenant" | "tenant_header">;

/** Returns true if the threads of a request belong to one tenant unless it names all of them. */
export function choosesTenant(access: Tenancy): boolean {
  return access.is_operator && access.tenant_header != null;
}

/** Returns the tenant that a list names: the chosen one, or all for who may choose. */
export function tenantOfList(tenant: string | undefined, access: Tenancy): string | undefined {
  return tenant ?? (choosesTenant(access) ? ALL_TENANTS : undefined);
}

/** Returns true if the host refuses a request about a thread that does not name its tenant. */
export function needsTenant(access: Tenancy): boolean {
  return choosesTenant(access) && access.tenant == null;
}
