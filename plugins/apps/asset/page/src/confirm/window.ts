// Virtual scrolling: a long table renders only the visible rows and the row with the focus.
import { type RefObject, useLayoutEffect, useState } from "react";

/** Rendered rows before and after the visible ones, so that Tab always reaches the next row. */
const OVERSCAN = 8;

/**
 * Returns the indices of the visible rows, of `OVERSCAN` rows around them, and of the row `kept`.
 */
export function rowsInSight(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
  kept: number | undefined,
): number[] {
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const last = Math.min(count - 1, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  const indices: number[] = [];
  for (let index = first; index <= last; index += 1) indices.push(index);
  if (kept === undefined || kept >= count || (kept >= first && kept <= last)) return indices;
  return kept < first ? [kept, ...indices] : [...indices, kept];
}

interface Sight {
  top: number;
  height: number;
}

/** Returns the scroll position and the height of an element, also after they change. */
export function useSight(box: RefObject<HTMLElement | null>): Sight {
  const [sight, setSight] = useState<Sight>({ top: 0, height: 480 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = () => {
      const next = { top: element.scrollTop, height: element.clientHeight };
      setSight((now) => (now.top === next.top && now.height === next.height ? now : next));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, [box]);
  return sight;
}
