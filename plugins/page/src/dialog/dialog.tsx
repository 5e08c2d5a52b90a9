// A modal dialog with the browser's own `<dialog>`, which keeps the focus and closes on Escape.
import { type ReactNode, useEffect, useId, useRef } from "react";
import { useTexts } from "../language/language.ts";
import "./dialog.css";

interface DialogProps {
  open: boolean;
  title: string;
  /** Called when the user closes the dialog: by Escape, by the button, or by a click outside. */
  onClose: () => void;
  /** Buttons at the end of the dialog. */
  footer?: ReactNode;
  /** As wide as the window allows, for tables. */
  wide?: boolean;
  /** A click outside closes the dialog. Not for dialogs in which work could be lost. */
  closeBeside?: boolean;
  children: ReactNode;
}

/** A dialog over the page. Its content exists only while it is open. */
export function Dialog(props: DialogProps) {
  const { open, title, onClose, footer, wide = false, closeBeside = false, children } = props;
  const texts = useTexts();
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null || dialog.open === open) return;
    if (open) dialog.showModal();
    else dialog.close();
  }, [open]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does by keyboard what a click beside does.
    <dialog
      ref={element}
      className="w-dialog"
      data-wide={wide}
      aria-labelledby={heading}
      onCancel={(event) => {
        // The property decides, so that dialog and page never disagree. A file chooser inside of
        // the dialog sends its own `cancel`.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (closeBeside && event.target === event.currentTarget) onClose();
      }}
    >
      {open && (
        <div className="w-dialog-box">
          <header>
            <h2 id={heading}>{title}</h2>
            <button
              type="button"
              className="w-icon-button"
              aria-label={texts.close}
              onClick={onClose}
            >
              <span aria-hidden="true">×</span>
            </button>
          </header>
          <div className="w-dialog-body">{children}</div>
          {footer !== undefined && <footer>{footer}</footer>}
        </div>
      )}
    </dialog>
  );
}
