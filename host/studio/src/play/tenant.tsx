// The choice of the tenant on whose behalf something is called.
import { useAccess } from "../access/access.tsx";
import { choosesTenant } from "../access/tenant.ts";
import { TenantField } from "../part/filters/usual-fields.tsx";
import styles from "./play.module.css";
import { TEXTS } from "./texts.ts";

interface TenantProps {
  value: string | undefined;
  onValue: (tenant: string) => void;
}

/** The tenant for which the operator calls, where a request needs one. */
export function Tenant({ value, onValue }: TenantProps) {
  const access = useAccess();
  if (!choosesTenant(access)) return null;
  return (
    <div className={styles.tenant}>
      <TenantField value={value} onValue={onValue} />
      <p className="w-note">{TEXTS.tenantNote}</p>
    </div>
  );
}
