// What a user sees of a list, and the row with the focus, while rows are added and removed.
import { type FocusEvent, useLayoutEffect, useRef } from "react";

/** Number of rows before a row that tell whether it stayed in its place among them. */
const COMPARED = 9;

interface KeptPlaceProps<R> {
  box: { readonly current: HTMLElement | null };
  rows: readonly R[];
  rowKey: (row: R) => string;
  rowPx: number;
  /** Position of the list before the rows changed, in pixels. */
  offset: number;
  /** Returns what finds the link of a row. */
  link: (index: number) => string;
}

/** Handlers of the element that scrolls. */
interface FocusHandlers {
  onFocus: (event: FocusEvent<HTMLElement>) => void;
  onBlur: () => void;
}

/**
 * Scrolls a list by the rows that were added and removed above the visible ones, unless it shows its
 * beginning. If the row with the focus is removed, the row after it gets the focus.
 */
export function useKeptPlace<R>(props: KeptPlaceProps<R>): FocusHandlers {
  const { box, rows, rowKey, rowPx, offset, link } = props;
  const before = useRef(rows);
  const focused = useRef<number>(undefined);
  useLayoutEffect(() => {
    const [old, element] = [before.current, box.current];
    before.current = rows;
    if (old === rows || element === null) return;
    if (offset === 0 && focused.current === undefined) return;
    const moved = movesTo(rows, rowKey);
    const shift = offset > 0 ? shiftAt(old, moved, Math.floor(offset / rowPx)) : 0;
    if (shift !== 0) element.scrollTop = offset + shift * rowPx;
    const index = focused.current;
    if (index === undefined) return;
    const next = successor(old, moved, index, rows.length);
    focused.current = next;
    if (next === undefined || document.activeElement !== document.body) return;
    element.querySelector<HTMLElement>(link(next))?.focus({ preventScroll: true });
  });
  return {
    onFocus: ({ target }) => {
      const row = target.closest<HTMLElement>("[data-index]");
      focused.current = row === null ? undefined : Number(row.dataset.index);
    },
    // React calls it for no element that it removes.
    onBlur: () => {
      focused.current = undefined;
    },
  };
}

/** Returns a row's new index; `undefined` for one that was removed. */
type Moves<R> = (row: R) => number | undefined;

function movesTo<R>(rows: readonly R[], rowKey: (row: R) => string): Moves<R> {
  const places = new Map(rows.map((row, index) => [rowKey(row), index]));
  return (row) => places.get(rowKey(row));
}

/**
 * Returns by how many rows the first row from an index on has moved that is still there. A row that
 * went to the beginning, such as a thread that was updated, does not take the others with it.
 */
export function shiftAt<R>(old: readonly R[], moved: Moves<R>, first: number): number {
  for (let at = first; at < old.length; at += 1) {
    const index = moved(old[at] as R);
    if (index === undefined) continue;
    const before = old.slice(Math.max(at - COMPARED, 0), at).map(moved);
    if (before.every((other) => other === undefined || other < index)) return index - at;
  }
  return 0;
}

/** Returns the new index of a row, or of the next one that was not removed, or the last index. */
function successor<R>(
  old: readonly R[],
  moved: Moves<R>,
  index: number,
  count: number,
): number | undefined {
  const next = old
    .slice(index)
    .map(moved)
    .find((found) => found !== undefined);
  return next ?? (count > 0 ? count - 1 : undefined);
}
