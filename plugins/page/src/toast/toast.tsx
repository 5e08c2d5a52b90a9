// Notices that disappear by themselves, and live regions.
import { type ReactNode, useSyncExternalStore } from "react";
import { useTexts } from "../language/language.ts";
import "./toast.css";

export type ToastKind = "info" | "ok" | "error";

interface Toast {
  id: number;
  text: string;
  kind: ToastKind;
}

/** Time for which a notice is shown, in milliseconds. Errors take longer to read. */
const SHOWN_MS = { info: 4_000, ok: 4_000, error: 10_000 } as const;

let toasts: readonly Toast[] = [];
let last = 0;
const watchers = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of [...watchers]) watcher();
}

function dismiss(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

/** Shows a notice. */
export function toast(text: string, kind: ToastKind = "info"): void {
  last += 1;
  const id = last;
  change([...toasts.filter((shown) => shown.text !== text), { id, text, kind }]);
  setTimeout(() => dismiss(id), SHOWN_MS[kind]);
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** The container of the notices, which `Shell` renders. */
export function Toasts() {
  const texts = useTexts();
  const shown = useSyncExternalStore(watch, () => toasts);
  return (
    <div className="w-toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, kind }) => (
        <p key={id} className="w-toast" data-kind={kind}>
          <span>{text}</span>
          <button
            type="button"
            className="w-icon-button"
            aria-label={texts.closeNotice}
            onClick={() => dismiss(id)}
          >
            <span aria-hidden="true">×</span>
          </button>
        </p>
      ))}
    </div>
  );
}

/** Passes a text to screen readers, without showing it. */
export function Announce({ children }: { children: ReactNode }) {
  return (
    <div className="w-hidden" role="status" aria-live="polite">
      {children}
    </div>
  );
}
