// What a list says of the rows that are rendered.
import { useEffect, useEffectEvent } from "react";

/** Number of rows before the last one at which more are asked for. */
const AHEAD = 20;

interface RenderedRows {
  /** The rendered rows, in order. */
  items: readonly { readonly index: number }[];
  /** Number of rows of the list. */
  count: number;
  /** True if there are no further rows. */
  isComplete: boolean;
  /** Called when the end of the rows is near. */
  onEnd?: (() => void) | undefined;
  /** Called with the indexes of the first and the last rendered row when they change. */
  onView?: ((view: readonly [first: number, last: number]) => void) | undefined;
}

/** Calls `onEnd` and `onView` as the rendered rows change. */
export function useRenderedRows({ items, count, isComplete, onEnd, onView }: RenderedRows): void {
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? -1;
  const isNearEnd = !isComplete && last >= count - 1 - AHEAD;
  // The count changes with each page, so that the next one is asked for.
  const end = isNearEnd ? count : undefined;
  const reachEnd = useEffectEvent(() => onEnd?.());
  useEffect(() => {
    if (end !== undefined) reachEnd();
  }, [end]);
  const view = useEffectEvent((from: number, to: number) => onView?.([from, to]));
  useEffect(() => view(first, last), [first, last]);
}
