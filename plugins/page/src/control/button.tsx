// Buttons.
import type { ButtonHTMLAttributes } from "react";
import "./control.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger";
  /** Work is in progress: the button can be focused and does nothing. */
  busy?: boolean;
}

/** A button that submits nothing unless its `type` says so. */
export function Button({
  kind = "plain",
  busy = false,
  className = "",
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`w-button ${className}`}
      data-kind={kind}
      aria-busy={busy}
      aria-disabled={busy || rest.disabled}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    />
  );
}
