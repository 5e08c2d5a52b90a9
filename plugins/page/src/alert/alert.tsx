// A failure in place, where the page would show its result.
import type { ReactNode } from "react";
import "./alert.css";

interface AlertProps {
  /** `warning`: the page still works, on older data for example. */
  kind?: "error" | "warning";
  /** Buttons that help, such as another attempt. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A message that screen readers read at once. */
export function Alert({ kind = "error", actions, children }: AlertProps) {
  return (
    <div className="w-alert" role="alert" data-kind={kind}>
      <div className="w-alert-text">{children}</div>
      {actions !== undefined && <div className="w-actions">{actions}</div>}
    </div>
  );
}
