// Reactions to a value that changes between renders.
import { useEffect, useEffectEvent, useRef } from "react";

/**
 * Calls `onChange` after a render with another value than the last one. `known` is the last value
 * at the first render, by default the value itself. `undefined` is no value: it is ignored.
 */
export function useChange<T>(value: T, onChange: () => void, known: T | null = value): void {
  const last = useRef(known);
  const changed = useEffectEvent(onChange);
  useEffect(() => {
    if (value === undefined || last.current === value) return;
    last.current = value;
    changed();
  }, [value]);
}
