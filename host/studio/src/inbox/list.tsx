// The list of open interrupts. One of them is selected.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useEffectEvent, useLayoutEffect, useRef } from "react";
import { useKeptPlace } from "../part/kept-place.ts";
import { useRenderedRows } from "../part/rendered-rows.ts";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { inboxRoute, RouteLink } from "../router/links.tsx";
import { type InboxFilter, keyOf, withItem } from "./filter.ts";
import { focusAnswer } from "./focus.ts";
import styles from "./inbox.module.css";
import type { InboxItem } from "./item.ts";
import { titleOf } from "./payload.tsx";
import { TEXTS } from "./texts.ts";

/** Height of a row, as the style sheet sets it. */
const ROW_PX = 60;

/** Rows that are rendered outside of the visible part. */
const OVERSCAN = 10;

interface InboxListProps {
  rows: readonly InboxItem[];
  isComplete: boolean;
  onEnd: () => void;
  /** Called with the indexes of the first and the last rendered row when they change. */
  onView: (view: readonly [first: number, last: number]) => void;
  filter: InboxFilter;
  /** Key of the selected interrupt. */
  selected: string | undefined;
  /** Changes when the row of the selected interrupt gets the focus. */
  focus: number;
}

/** The rows, of which only the visible ones are rendered. */
export function InboxList(props: InboxListProps) {
  const { rows, isComplete, onEnd, onView, filter, selected, focus } = props;
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  useRenderedRows({ items, count: rows.length, isComplete, onEnd, onView });
  const offset = virtual.scrollOffset ?? 0;
  const kept = useKeptPlace({ box, rows, rowKey: keyOf, rowPx: ROW_PX, offset, link: linkOf });
  const at = rows.findIndex((row) => keyOf(row) === selected);
  useRowFocus({ box, at, selected, focus }, () => virtual.scrollToIndex(at));
  return (
    <div ref={box} className={styles.list} {...kept}>
      <ul aria-label={TEXTS.list} style={{ blockSize: virtual.getTotalSize() }}>
        {items.map(({ index, start }) => {
          const row = rows[index] as InboxItem;
          const key = keyOf(row);
          return (
            <li
              key={key}
              style={{ transform: `translateY(${start}px)` }}
              aria-setsize={isComplete ? rows.length : -1}
              aria-posinset={index + 1}
            >
              <Row row={row} filter={filter} isSelected={key === selected} index={index} />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

interface RowProps {
  row: InboxItem;
  filter: InboxFilter;
  isSelected: boolean;
  index: number;
}

function Row({ row, filter, isSelected, index }: RowProps) {
  const { app, graph, interrupt } = row;
  return (
    <RouteLink
      to={inboxRoute(withItem(filter, row))}
      className={styles.row}
      aria-current={isSelected ? "true" : undefined}
      data-index={index}
      onKeyDown={(event) => {
        // Enter selects a row, and goes to the answer from the selected one.
        if (event.key === "Enter" && isSelected && focusAnswer()) event.preventDefault();
      }}
    >
      <span className={styles.title}>
        <Text>{titleOf(interrupt.payload, interrupt.node)}</Text>
      </span>
      <span className={styles.where}>
        <Text>{`${app} / ${graph}`}</Text> · <Time ms={interrupt.asked_ms} />
      </span>
    </RouteLink>
  );
}

/** Returns what finds the link of a row. */
const linkOf = (index: number) => `[data-index="${index}"]`;

interface RowFocus {
  box: { readonly current: HTMLDivElement | null };
  /** Index of the selected row; -1 if the list does not have it. */
  at: number;
  selected: string | undefined;
  focus: number;
}

/**
 * Scrolls to a row when it is selected, and gives it the focus as soon as it is rendered. The list
 * does not scroll back to it when other rows are added or removed.
 */
function useRowFocus({ box, at, selected, focus }: RowFocus, scroll: () => void): void {
  const done = useRef(0);
  const scrollTo = useEffectEvent(scroll);
  const isThere = at >= 0;
  useEffect(() => {
    if (selected !== undefined && isThere && focus > 0) scrollTo();
  }, [selected, isThere, focus]);
  // Before the browser shows the next question, so that a key that is pressed then reaches the row.
  useLayoutEffect(() => {
    if (focus === done.current || at < 0) return;
    const row = box.current?.querySelector<HTMLElement>(linkOf(at));
    if (row == null) return;
    done.current = focus;
    row.focus({ preventScroll: true });
  });
}
