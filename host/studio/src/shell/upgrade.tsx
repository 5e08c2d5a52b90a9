// A notice that the host was upgraded while the studio was open.
import { Alert, Button } from "@wattle/page";
import { useState } from "react";
import { useAccess } from "../access/access.tsx";
import { useHealth } from "../api/health.ts";
import { TEXTS } from "./texts.ts";

/** Shows the notice if the host runs another version than the one that served the studio. */
export function UpgradeNotice() {
  const { version } = useAccess();
  const [first] = useState(version);
  const { data } = useHealth();
  if (data === undefined || data.version === first) return null;
  return (
    <Alert
      kind="warning"
      actions={<Button onClick={() => location.reload()}>{TEXTS.reload}</Button>}
    >
      {TEXTS.upgraded(data.version)}
    </Alert>
  );
}
