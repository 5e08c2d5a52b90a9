// State that outlives a reload.
import { useState } from "react";

/** Returns a value that `localStorage` keeps under `key`, if the browser allows it. */
export function usePersistent<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState(() => read(key, initial));
  const set = (next: T) => {
    setValue(next);
    write(key, next);
  };
  return [value, set];
}

function read<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(key);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    // There is no storage, or it has a value that this page does not write.
    return initial;
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The value lasts as long as the page.
  }
}
