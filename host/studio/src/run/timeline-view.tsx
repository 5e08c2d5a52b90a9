// The rows of a timeline. Only visible ones are rendered.
import type { ReactNode } from "react";
import { bytesText, durationText } from "../part/amount.ts";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { type Column, VirtualList } from "../part/virtual-list.tsx";
import { RouteLink } from "../router/links.tsx";
import { nameOf } from "./names.ts";
import { hasState, type Row } from "./row.ts";
import styles from "./run.module.css";
import { TEXTS } from "./texts.ts";

interface TimelineViewProps {
  /** Returns the route of the view in which a row is selected. */
  routeOf: (row: Row) => string;
  rows: readonly Row[];
  /** Id of the selected row. */
  current: string | undefined;
  /** Index of the row that is scrolled into view, as in `VirtualList`. */
  shown: number | undefined;
  onToggle: (row: Row) => void;
}

/** Indent of a level, in pixels, and the deepest level that is indented further. */
const INDENT_PX = 16;
const DEEPEST = 12;

/** Characters at the end of a streamed text that a row shows. */
const LIVE_CHARS = 160;

export function TimelineView({ routeOf, rows, current, shown, onToggle }: TimelineViewProps) {
  return (
    <VirtualList
      label={TEXTS.timeline}
      columns={columnsOf(routeOf, onToggle)}
      rows={rows}
      rowKey={({ id }) => id}
      isComplete
      current={current}
      shown={shown}
    />
  );
}

function columnsOf(
  routeOf: TimelineViewProps["routeOf"],
  onToggle: TimelineViewProps["onToggle"],
): readonly Column<Row>[] {
  return [
    {
      key: "name",
      header: TEXTS.event,
      render: (row) => <Name to={routeOf(row)} row={row} onToggle={onToggle} />,
    },
    {
      key: "status",
      header: TEXTS.status,
      className: styles.status,
      render: ({ kind, status }) => hasState(kind) && <Status name={status} />,
    },
    {
      key: "amount",
      header: TEXTS.amount,
      className: `${styles.amount} ${styles.wide}`,
      render: ({ call }) => call && amountOf(call),
    },
    {
      key: "duration",
      header: TEXTS.took,
      className: `${styles.duration} ${styles.wide}`,
      render: ({ durationUs }) => durationUs !== undefined && durationText(durationUs),
    },
  ];
}

/** Rows whose detail are the channels that they wrote. */
const WRITERS = new Set<Row["kind"]>(["step", "task", "attempt"]);

function amountOf({ tokens, resultBytes }: NonNullable<Row["call"]>): string | undefined {
  if (tokens !== undefined) return `${tokens.input} + ${tokens.output}`;
  return resultBytes === undefined ? undefined : bytesText(resultBytes);
}

interface NameProps {
  to: string;
  row: Row;
  onToggle: (row: Row) => void;
}

function Name({ to, row, onToggle }: NameProps): ReactNode {
  const { id, depth, childCount, isOpen, seq } = row;
  const name = nameOf(row);
  const toggle = isOpen ? TEXTS.close : TEXTS.open;
  return (
    <div
      className={styles.name}
      style={{ paddingInlineStart: Math.min(depth, DEEPEST) * INDENT_PX }}
      data-kind={row.kind}
      data-status={row.status}
    >
      {childCount > 0 ? (
        <button
          type="button"
          className={styles.toggle}
          aria-expanded={isOpen}
          aria-label={toggle(visible(name))}
          onClick={() => onToggle(row)}
        >
          {isOpen ? "▾" : "▸"}
        </button>
      ) : (
        <span className={styles.toggle} aria-hidden="true" />
      )}
      <RouteLink to={to} data-seq={seq} data-row={id}>
        <Text>{name}</Text>
      </RouteLink>
      <span className={styles.detail}>
        <Text>{detailOf(row)}</Text>
      </span>
    </div>
  );
}

function detailOf({ kind, status, detail, code, call, replayed }: Row): string {
  if (kind === "message") return "";
  if (call !== undefined && status === "running") {
    const live = (call.text || call.reasoning).slice(-LIVE_CHARS).replace(/\s+/g, " ");
    return live === "" ? detail : live;
  }
  if (code !== undefined) return `${code}: ${detail}`;
  const said = detail !== "" && WRITERS.has(kind) ? TEXTS.wrote(detail) : detail;
  const texts = [said, replayed > 0 ? TEXTS.replayed(replayed) : ""];
  return texts.filter((text) => text !== "").join(" · ");
}
