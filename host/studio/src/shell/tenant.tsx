// The tenant of a view of threads, which is asked for if the address does not name it.
import { useMatches } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useAccess } from "../access/access.tsx";
import { ValueForm } from "../access/login.tsx";
import { needsTenant } from "../access/tenant.ts";
import { FEATURES } from "../router/features.ts";
import { useSetParameter } from "../router/links.tsx";
import { name } from "../router/search.ts";
import styles from "./shell.module.css";
import { TENANT } from "./texts.ts";
import { useTitle } from "./title.ts";

/** The search parameter that names the tenant. */
const PARAMETER = "tenant";

/** Paths of the routes of views of threads. */
const PATHS = new Set(FEATURES.flatMap(({ path, isOfThreads }) => (isOfThreads ? [path] : [])));

/** Shows a view, or asks for the tenant without which the host refuses its requests. */
export function TenantGate({ children }: { children: ReactNode }) {
  const access = useAccess();
  // The matches are those of the view that is shown; the location is that of the next one already.
  const isUnnamed = useMatches({
    select: (matches) => {
      const { fullPath = "", search = {} } = matches.at(-1) ?? {};
      const { [PARAMETER]: tenant = "" }: Record<string, string> = search;
      return PATHS.has(fullPath) && name(tenant) === undefined;
    },
  });
  return isUnnamed && needsTenant(access) ? <TenantForm /> : children;
}

function TenantForm() {
  useTitle(TENANT.title);
  const set = useSetParameter();
  return (
    <div className={styles.problem}>
      <h2>{TENANT.title}</h2>
      <p>{TENANT.unnamed}</p>
      <ValueForm
        label={TENANT.tenant}
        action={TENANT.continue}
        problemOf={(tenant) => (name(tenant) === undefined ? TENANT.tooLong : undefined)}
        onValue={(tenant) => set(PARAMETER, tenant)}
      />
      <p className="w-note">{TENANT.none}</p>
    </div>
  );
}
