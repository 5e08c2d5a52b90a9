// Table in which a person checks, completes and deletes rows.
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { Gap } from "@wattle/page/table";
import { Fragment, memo, useId, useRef, useState } from "react";
import styles from "./confirm.module.css";
import { COLUMNS, type Column, type DraftRow, type FieldName, flawOf, type Kind } from "./draft.ts";

const ROW_PX = 44;

/** Rendered rows before and after the visible ones, so that Tab always reaches the next row. */
const OVERSCAN = 8;

interface Props {
  kind: Kind;
  rows: readonly DraftRow[];
  /** Fields that the server rejected, such as `rows[0].ticker`. */
  refused: readonly string[];
  onEdit: (key: number, field: FieldName, text: string) => void;
  onDelete: (key: number) => void;
  /** Key of an added row, whose first field gets the focus. */
  fresh: number | undefined;
}

/** Renders the visible rows, and empty space in place of the others. */
export function AssetConfirmTable(props: Props) {
  const { kind, rows, refused, onEdit, onDelete, fresh } = props;
  const box = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState(-1);
  const columns = COLUMNS[kind];
  const span = columns.length + 1;
  // These rows are rendered wherever they are: the one with the focus keeps it, and the added one
  // takes it once.
  const kept = [focused, rows.findIndex(({ key }) => key === fresh)];
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    rangeExtractor: (range) => {
      const others = kept.filter((index) => index >= 0 && index < range.count);
      const indices = new Set([...defaultRangeExtractor(range), ...others]);
      return [...indices].sort((one, other) => one - other);
    },
  });
  const items = virtual.getVirtualItems();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields.
    <div ref={box} className={styles.frame} role="group" aria-label="待确认的记录" tabIndex={0}>
      <table aria-label="待确认的记录" aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ field, width }) => (
            <col key={field} style={{ width: `${width}em` }} />
          ))}
          <col style={{ width: "4em" }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ field, heading }) => (
              <th key={field} scope="col">
                {heading}
              </th>
            ))}
            <th scope="col">
              <span className="w-hidden">删除</span>
            </th>
          </tr>
        </thead>
        <tbody
          onFocus={(event) => {
            setFocused(indexOf(event.target));
            reveal(event.target.nextElementSibling);
          }}
          onBlur={() => setFocused(-1)}
        >
          {items.map(({ index, start }, place) => {
            const row = rows[index] as DraftRow;
            return (
              <Fragment key={row.key}>
                <Gap height={start - (items[place - 1]?.end ?? 0)} span={span} />
                <Row
                  row={row}
                  index={index}
                  columns={columns}
                  refused={refusedOf(refused, index)}
                  isFresh={row.key === fresh}
                  onEdit={onEdit}
                  onDelete={onDelete}
                />
              </Fragment>
            );
          })}
          <Gap height={virtual.getTotalSize() - (items.at(-1)?.end ?? 0)} span={span} />
        </tbody>
      </table>
    </div>
  );
}

/** Returns the index of the row of an element; -1 outside of rows. */
function indexOf(element: Element): number {
  return Number(element.closest("tr")?.dataset.index ?? -1);
}

/**
 * Scrolls the reason of a cell into view if the cell has the focus. The frame may cut it, because it
 * is shown below the cell.
 */
function reveal(reason: Element | null): void {
  if (reason === null || reason.previousElementSibling !== document.activeElement) return;
  reason.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function focus(element: HTMLElement | null): void {
  element?.focus();
}

/** Returns the rejected fields of a row as one text, so that `memo` compares them by value. */
function refusedOf(refused: readonly string[], index: number): string {
  const start = `rows[${index}].`;
  const names = refused.filter((name) => name.startsWith(start));
  return names.map((name) => name.slice(start.length)).join(" ");
}

interface RowProps extends Pick<Props, "onEdit" | "onDelete"> {
  row: DraftRow;
  index: number;
  columns: readonly Column[];
  refused: string;
  isFresh: boolean;
}

const Row = memo(function Row(props: RowProps) {
  const { row, index, columns, refused, isFresh, onEdit, onDelete } = props;
  const refusedFields = refused.split(" ");
  const id = useId();
  return (
    <tr aria-rowindex={index + 2} data-index={index} style={{ height: ROW_PX }}>
      {columns.map((column, place) => {
        const { field, heading } = column;
        const isRefused = refusedFields.includes(field);
        const flaw = flawOf(row, column) ?? (isRefused ? "服务没有接受这个值" : undefined);
        const reasonId = `${id}-${field}`;
        const cell = {
          className: styles.cell,
          "aria-label": `第 ${index + 1} 行 ${heading}`,
          "aria-invalid": flaw !== undefined,
          "aria-describedby": flaw === undefined ? undefined : reasonId,
          title: flaw,
          value: row.texts[field],
          ref: isFresh && place === 0 ? focus : undefined,
          onChange: (event: { target: { value: string } }) =>
            onEdit(row.key, field, event.target.value),
        };
        return (
          <td key={field} data-flawed={flaw !== undefined}>
            {field === "action" ? (
              <select {...cell}>
                <option value="buy">买入</option>
                <option value="sell">卖出</option>
              </select>
            ) : (
              <input
                {...cell}
                type="text"
                inputMode={isNumber(field) ? "decimal" : undefined}
                placeholder={flaw === undefined ? column.sample : "请补充"}
                autoComplete="off"
                spellCheck={false}
              />
            )}
            {flaw !== undefined && (
              <span key={flaw} ref={reveal} id={reasonId} className={styles.reason}>
                {flaw}
              </span>
            )}
          </td>
        );
      })}
      <td>
        <button
          type="button"
          className="w-icon-button"
          aria-label={`删除第 ${index + 1} 行`}
          onClick={() => onDelete(row.key)}
        >
          <span aria-hidden="true">×</span>
        </button>
      </td>
    </tr>
  );
});

function isNumber(field: FieldName): boolean {
  return field === "quantity" || field === "price" || field === "costPrice";
}
