// What a filter can be set to.
import { visible } from "./text.tsx";

export interface Option {
  value: string;
  name: string;
}

/**
 * Returns the choice of all, then the known values, and the selected one, which the host may not
 * have any more.
 */
export function optionsOf(
  all: string,
  known: readonly string[],
  selected: string | undefined,
): Option[] {
  const values = new Set(selected === undefined ? known : [...known, selected]);
  const sorted = [...values].sort((one, other) => one.localeCompare(other));
  return [{ value: "", name: all }, ...sorted.map((value) => ({ value, name: visible(value) }))];
}
