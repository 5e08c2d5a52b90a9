// A table of many rows: only visible rows are rendered, and headings sort.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { useTexts } from "../language/language.ts";
import { nextSorting, type Sortable, type Sorting, sorted } from "./sort.ts";
import "./table.css";

export type { Sortable } from "./sort.ts";

export interface Column<R> {
  key: string;
  header: string;
  /** Content of a cell; the value by default. */
  render?: (row: R, index: number) => ReactNode;
  /** Value by which the column is sorted. Without it, the column cannot be sorted. */
  value?: (row: R) => Sortable;
  align?: "start" | "end";
}

interface DataTableProps<R> {
  /** Name of the table. */
  label: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  /** Key of a row; the index by default. */
  rowKey?: (row: R, index: number) => string | number;
  /** Maximum height before the table scrolls. */
  maxHeight?: number;
  /** Shown if there are no rows. */
  empty?: string;
}

const ROW_PX = 36;
const OVERSCAN = 12;

/** Number of rows that are read to estimate widths. */
const SAMPLE = 100;
const NARROWEST_CH = 6;
const WIDEST_CH = 40;

function shown(value: Sortable): string {
  if (value === null || value === undefined) return "";
  return value instanceof Date ? value.toISOString() : String(value);
}

/** Returns the width of a text in digits. Chinese characters take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += (char.codePointAt(0) ?? 0) > 0x2e7f ? 2 : 1;
  return width;
}

/** Returns a width in `ch` for a column, estimated from the first rows. */
function estimate<R>(column: Column<R>, rows: readonly R[]): number {
  const texts = rows.slice(0, SAMPLE).map((row) => shown(column.value?.(row)));
  const widest = Math.max(widthOf(column.header) + 3, ...texts.map(widthOf));
  return Math.min(Math.max(widest, NARROWEST_CH), WIDEST_CH) + 3;
}

/** A sortable table in a scrolling box. */
export function DataTable<R>(props: DataTableProps<R>) {
  const { label, columns, rows, maxHeight = 480, empty } = props;
  const texts = useTexts();
  const [sorting, setSorting] = useState<Sorting>();
  const box = useRef<HTMLDivElement>(null);
  const ordered = useMemo(() => {
    const value = columns.find(({ key }) => key === sorting?.key)?.value;
    return sorting && value ? sorted(rows, value, sorting.direction) : rows;
  }, [columns, rows, sorting]);
  const widths = useMemo(() => columns.map((column) => estimate(column, rows)), [columns, rows]);
  const virtual = useVirtualizer({
    count: ordered.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  if (rows.length === 0) return <p className="w-note">{empty ?? texts.noRows}</p>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields.
    <div
      ref={box}
      className="w-table"
      role="group"
      aria-label={label}
      tabIndex={0}
      style={{ maxHeight }}
    >
      <table aria-label={label} aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ key }, index) => (
            <col key={key} style={{ width: `${widths[index]}ch` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Heading
                key={column.key}
                column={column}
                sorting={sorting}
                onSort={() => setSorting(nextSorting(sorting, column.key))}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap height={before} span={columns.length} />
          {items.map(({ index }) => {
            const row = ordered[index] as R;
            return (
              <tr key={props.rowKey?.(row, index) ?? index} aria-rowindex={index + 2}>
                {columns.map((column) => (
                  <td key={column.key} data-align={column.align ?? "start"}>
                    {column.render ? column.render(row, index) : shown(column.value?.(row))}
                  </td>
                ))}
              </tr>
            );
          })}
          <Gap height={after} span={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

/** A row in place of rows that are not rendered. `span` is the number of columns. */
export function Gap({ height, span }: { height: number; span: number }) {
  if (height <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row of a plain table takes no focus.
    <tr aria-hidden="true" className="w-table-gap">
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}

interface HeadingProps<R> {
  column: Column<R>;
  sorting: Sorting | undefined;
  onSort: () => void;
}

const SIGNS = { ascending: "↑", descending: "↓", none: "↕" } as const;

function Heading<R>({ column, sorting, onSort }: HeadingProps<R>) {
  const align = column.align ?? "start";
  if (column.value === undefined) {
    return (
      <th scope="col" data-align={align}>
        {column.header}
      </th>
    );
  }
  const order = sorting?.key === column.key ? sorting.direction : "none";
  return (
    <th scope="col" aria-sort={order} data-align={align}>
      <button type="button" onClick={onSort}>
        {column.header}
        <span aria-hidden="true"> {SIGNS[order]}</span>
      </button>
    </th>
  );
}
