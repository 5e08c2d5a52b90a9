// A list of any length, of which only the visible rows are rendered. The host sorts it. The list
// asks for more rows before its end is reached.
import { useVirtualizer } from "@tanstack/react-virtual";
import { Gap } from "@wattle/page/table";
import { type ReactNode, useEffect, useEffectEvent, useRef } from "react";
import { useShortcut } from "../shell/keys.tsx";
import { useKeptPlace } from "./kept-place.ts";
import styles from "./part.module.css";
import { useRenderedRows } from "./rendered-rows.ts";

export interface Column<R> {
  key: string;
  header: string;
  render: (row: R) => ReactNode;
  /** Class of the heading and the cells, for their width. */
  className?: string | undefined;
}

interface VirtualListProps<R> {
  /** Name of the list. */
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  rowKey: (row: R) => string;
  /** True for a row that is marked, because it is new. */
  isMarked?: (row: R) => boolean;
  /** True if there are no further rows. */
  isComplete: boolean;
  /** Called when the end of the rows is near. */
  onEnd?: () => void;
  /** Called with the indexes of the first and the last rendered row when they change. */
  onView?: (view: readonly [first: number, last: number]) => void;
  /** Key of the selected row. */
  current?: string | undefined;
  /**
   * Index of a row that is scrolled into view: of the selected row, when it is selected or the rows
   * get it; without a selected row, whenever the index changes.
   */
  shown?: number | undefined;
}

/** Height of a row, as `w-table` sets it. */
const ROW_PX = 36;

/** Rows that are rendered outside of the visible part. */
const OVERSCAN = 12;

/** Keys that move between rows, with what they do. */
const KEYS = { next: "Next row", previous: "Previous row" };

/** A table whose rows have a link each, in the first cell. `j` and `k` move between them. */
export function VirtualList<R>(props: VirtualListProps<R>) {
  const { label, columns, rows, rowKey, isMarked, isComplete, onEnd, onView, current, shown } =
    props;
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    // The heading takes the place of one row.
    scrollPaddingEnd: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  useRenderedRows({ items, count: rows.length, isComplete, onEnd, onView });
  const show = useEffectEvent(() => shown !== undefined && virtual.scrollToIndex(shown));
  // The index of the selected row changes with the rows above it, and the list stays in place.
  const target = current ?? shown;
  const isThere = shown !== undefined;
  useEffect(() => {
    if (target !== undefined && isThere) show();
  }, [target, isThere]);
  const offset = virtual.scrollOffset ?? 0;
  const focus = useKeptPlace({ box, rows, rowKey, rowPx: ROW_PX, offset, link: linkOf });
  useRowKeys(box, rows.length, (index) => virtual.scrollToIndex(index));
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <div ref={box} className={`w-table ${styles.list}`} data-list {...focus}>
      <table aria-label={label} aria-rowcount={isComplete ? rows.length + 1 : -1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ key, header, className }) => (
              <th key={key} scope="col" className={className}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {/* A cell over columns that are hidden on a telephone would take their room. */}
          <Gap height={before} span={1} />
          {items.map(({ index }) => {
            const row = rows[index] as R;
            const key = rowKey(row);
            return (
              <tr
                key={key}
                aria-rowindex={index + 2}
                aria-current={key === current ? "true" : undefined}
                data-index={index}
                data-marked={isMarked?.(row) === true ? true : undefined}
              >
                {columns.map(({ key, render, className }) => (
                  <td key={key} className={className}>
                    {render(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Gap height={after} span={1} />
        </tbody>
      </table>
    </div>
  );
}

/** Returns what finds the link of a row. */
const linkOf = (index: number) => `tr[data-index="${index}"] a`;

/** Moves the focus from row to row. A row that is not rendered gets it as soon as it is. */
function useRowKeys(
  box: { readonly current: HTMLDivElement | null },
  count: number,
  scrollTo: (index: number) => void,
): void {
  const waiting = useRef<number>(undefined);
  const focus = () => {
    if (waiting.current === undefined) return;
    const link = box.current?.querySelector<HTMLElement>(linkOf(waiting.current));
    if (link === null || link === undefined) return;
    waiting.current = undefined;
    link.focus();
  };
  useEffect(() => {
    if (waiting.current !== undefined) focus();
  });
  const move = (by: number) => {
    const row = document.activeElement?.closest<HTMLElement>("tr[data-index]");
    const now = row != null && box.current?.contains(row) ? Number(row.dataset.index) : undefined;
    const next = now === undefined ? 0 : now + by;
    if (next < 0 || next >= count) return;
    waiting.current = next;
    scrollTo(next);
    focus();
  };
  useShortcut("j", KEYS.next, () => move(1));
  useShortcut("k", KEYS.previous, () => move(-1));
}
