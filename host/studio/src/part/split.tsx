// A view with a panel beside it. A narrow window shows the panel in place of the view.
import { Button } from "@wattle/page";
import { type ReactNode, useEffect, useRef } from "react";
import { useShortcut } from "../shell/keys.tsx";
import styles from "./part.module.css";

interface SplitProps {
  children: ReactNode;
  /** The content of the panel; `undefined` if it is closed. */
  panel: ReactNode | undefined;
  /** Name of the panel. */
  label: string;
  onClose: () => void;
}

const TEXTS = { close: "Close", closeKey: "Close the panel" };

/** A view, and a panel if there is something to show in it. */
export function Split({ children, panel, label, onClose }: SplitProps) {
  const isOpen = panel !== undefined;
  return (
    <div className={styles.split} data-open={isOpen}>
      <div className={styles.main}>{children}</div>
      {isOpen && (
        <Side label={label} onClose={onClose}>
          {panel}
        </Side>
      )}
    </div>
  );
}

function Side({ label, onClose, children }: Omit<SplitProps, "panel">) {
  const box = useRef<HTMLDivElement>(null);
  useShortcut("Escape", TEXTS.closeKey, onClose);
  useEffect(() => {
    // What had the focus is hidden in a narrow window.
    const isSeen = document.activeElement?.checkVisibility?.({ visibilityProperty: true });
    if (isSeen === false) box.current?.focus();
  }, []);
  return (
    <aside className={styles.side} aria-label={label}>
      <header className={styles.sideHead}>
        <h3>{label}</h3>
        <Button onClick={onClose}>{TEXTS.close}</Button>
      </header>
      {/* biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields. */}
      <div ref={box} className={styles.sideBody} role="group" aria-label={label} tabIndex={0}>
        {children}
      </div>
    </aside>
  );
}
