// Table in which a person checks, completes and deletes rows.
import { Fragment, memo, useCallback, useId, useLayoutEffect, useRef, useState } from "react";
import { COLUMNS, type Column, type DraftRow, type FieldName, flawOf, type Kind } from "./draft.ts";
import "./confirm.css";
import { rowsInSight, useSight } from "./window.ts";

const ROW_PX = 44;

interface Props {
  kind: Kind;
  rows: readonly DraftRow[];
  /** Cells that the server rejected, such as `0.ticker`. */
  refused: ReadonlySet<string>;
  onEdit: (key: number, field: FieldName, text: string) => void;
  onDelete: (key: number) => void;
  /** Key of an added row, whose first field gets the focus. */
  fresh: number | undefined;
}

/** Renders the visible rows, and empty space in place of the others. */
export function AssetConfirmTable(props: Props) {
  const { kind, rows, refused, onEdit, onDelete, fresh } = props;
  const box = useRef<HTMLDivElement>(null);
  const { top, height } = useSight(box);
  const [focused, setFocused] = useState<number>();
  const columns = COLUMNS[kind];
  const freshIndex = rows.findIndex(({ key }) => key === fresh);
  useLayoutEffect(() => {
    // An added row is the last one and may be outside of the visible area.
    const element = box.current;
    if (element !== null && freshIndex >= 0) element.scrollTop = freshIndex * ROW_PX;
  }, [freshIndex]);
  const kept = focused ?? (freshIndex >= 0 ? freshIndex : undefined);
  const indices = rowsInSight(top, height, ROW_PX, rows.length, kept);
  const last = indices.at(-1) ?? -1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields.
    <div ref={box} className="a-confirm" role="group" aria-label="待确认的记录" tabIndex={0}>
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
          onBlur={() => setFocused(undefined)}
        >
          {indices.map((index, place) => {
            const row = rows[index] as DraftRow;
            const skipped = index - (indices[place - 1] ?? -1) - 1;
            return (
              <Fragment key={row.key}>
                <Gap rows={skipped} span={columns.length + 1} />
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
          <Gap rows={rows.length - 1 - last} span={columns.length + 1} />
        </tbody>
      </table>
    </div>
  );
}

function indexOf(target: EventTarget): number | undefined {
  const row = target instanceof Element ? target.closest("tr") : null;
  const index = Number(row?.dataset.index);
  return Number.isNaN(index) ? undefined : index;
}

/**
 * Scrolls the reason of a cell into view if the cell has the focus. The frame may cut it, because it
 * is shown below the cell.
 */
function reveal(reason: Element | null): void {
  if (reason === null || reason.previousElementSibling !== document.activeElement) return;
  reason.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Returns the rejected fields of a row as one text, so that `memo` compares them by value. */
function refusedOf(refused: ReadonlySet<string>, index: number): string {
  const start = `${index}.`;
  const fields = [...refused].filter((cell) => cell.startsWith(start));
  return fields.map((cell) => cell.slice(start.length)).join(" ");
}

/** Empty space in place of rows that are not rendered. */
function Gap({ rows, span }: { rows: number; span: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row of a plain table takes no focus.
    <tr aria-hidden="true" className="a-gap">
      <td colSpan={span} style={{ height: rows * ROW_PX }} />
    </tr>
  );
}

interface RowProps {
  row: DraftRow;
  index: number;
  columns: readonly Column[];
  refused: string;
  isFresh: boolean;
  onEdit: Props["onEdit"];
  onDelete: Props["onDelete"];
}

const Row = memo(function Row(props: RowProps) {
  const { row, index, columns, refused, isFresh, onEdit, onDelete } = props;
  const refusedFields = refused.split(" ");
  const focus = useCallback((element: HTMLElement | null) => element?.focus(), []);
  const id = useId();
  return (
    <tr aria-rowindex={index + 2} data-index={index} style={{ height: ROW_PX }}>
      {columns.map((column, place) => {
        const { field, heading } = column;
        const isRefused = refusedFields.includes(field);
        const flaw = flawOf(row, column) ?? (isRefused ? "服务没有接受这个值" : undefined);
        const reasonId = `${id}-${field}`;
        const cell = {
          className: "a-cell",
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
              <span key={flaw} ref={reveal} id={reasonId} className="a-reason">
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
