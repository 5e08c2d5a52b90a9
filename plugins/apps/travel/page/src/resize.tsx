// The width of the conversation, which changes by dragging its edge or by keyboard.
import { usePersistent } from "@wattle/page";
import type { KeyboardEvent, PointerEvent } from "react";
import styles from "./page.module.css";

export const NARROWEST = 300;
export const WIDEST = 600;
const USUAL = 420;
const STEP = 16;

/** Returns a width within the bounds. */
export function bounded(width: number): number {
  return Math.round(Math.min(Math.max(width, NARROWEST), WIDEST));
}

/** Returns the width that the user has chosen. */
export function usePanelWidth(): [number, (width: number) => void] {
  const [width, setWidth] = usePersistent("wattle-travel-panel", USUAL);
  const known = Number.isFinite(width) ? width : USUAL;
  return [bounded(known), (next) => setWidth(bounded(next))];
}

/** Returns the width after a key; `undefined` for keys without an effect. */
export function widthAfter(key: string, width: number): number | undefined {
  const widths: Record<string, number> = {
    ArrowLeft: width + STEP,
    ArrowRight: width - STEP,
    Home: NARROWEST,
    End: WIDEST,
  };
  const next = widths[key];
  return next === undefined ? undefined : bounded(next);
}

interface PanelHandleProps {
  width: number;
  onChange: (width: number) => void;
}

/** The edge between guide and conversation. */
export function PanelHandle({ width, onChange }: PanelHandleProps) {
  const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
    event.preventDefault();
    event.currentTarget.focus();
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent<HTMLDivElement>) => {
    const handle = event.currentTarget;
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const edge = handle.parentElement?.getBoundingClientRect().right ?? innerWidth;
    onChange(edge - event.clientX);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = widthAfter(event.key, width);
    if (next === undefined) return;
    event.preventDefault();
    onChange(next);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved.
    <div
      className={styles.handle}
      role="separator"
      aria-orientation="vertical"
      aria-label="调整对话面板宽度"
      aria-valuemin={NARROWEST}
      aria-valuemax={WIDEST}
      aria-valuenow={width}
      tabIndex={0}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
    />
  );
}
