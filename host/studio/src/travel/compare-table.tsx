// The rows of two runs side by side, and the panel of a pair of them.
import { durationText } from "../part/amount.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { type Column, VirtualList } from "../part/virtual-list.tsx";
import { compareRoute, RouteLink } from "../router/links.tsx";
import { nameOf } from "../run/names.ts";
import { RowPanel } from "../run/panel.tsx";
import { hasState, type Row } from "../run/row.ts";
import type { Pair } from "./align.ts";
import { CallDiffs } from "./call-diff-view.tsx";
import type { Places } from "./compare-head.tsx";
import { SIDES, type SideName } from "./sides.ts";
import { COMPARE } from "./texts.ts";
import styles from "./travel.module.css";

/** Indent of a level, in pixels, and the deepest level that is indented further. */
const INDENT_PX = 12;
const DEEPEST = 8;

/** Returns the row of a pair that names it: the left one, if there is one. */
export function rowOf({ left, right }: Pair): Row {
  const row = left ?? right;
  if (row === undefined) throw new Error("a pair has a row");
  return row;
}

interface PairTableProps {
  places: Places;
  pairs: readonly Pair[];
  /** Id of the selected pair. */
  current: string | undefined;
  /** Index of the pair that is scrolled into view, as in `VirtualList`. */
  shown: number | undefined;
}

export function PairTable({ places, pairs, current, shown }: PairTableProps) {
  return (
    <VirtualList
      label={COMPARE.table}
      columns={columnsOf(places)}
      rows={pairs}
      rowKey={({ id }) => id}
      isComplete
      current={current}
      shown={shown}
    />
  );
}

function columnsOf(places: Places): readonly Column<Pair>[] {
  const [left, right] = SIDES.map((side) => ({
    key: side,
    header: COMPARE.sides[side],
    className: styles.run,
    render: (pair: Pair) => <Cell places={places} pair={pair} side={side} />,
  }));
  const relation: Column<Pair> = {
    key: "relation",
    header: COMPARE.relation,
    className: styles.relation,
    render: ({ relation }) => (
      <span className={styles.badge} data-relation={relation}>
        {COMPARE.relations[relation]}
      </span>
    ),
  };
  return [left, relation, right].filter((column) => column !== undefined);
}

interface CellProps {
  places: Places;
  pair: Pair;
  side: SideName;
}

function Cell({ places, pair, side }: CellProps) {
  const row = pair[side];
  if (row === undefined) return <span className={styles.absent}>–</span>;
  const { kind, status, durationUs } = row;
  return (
    <div
      className={styles.cell}
      style={{ paddingInlineStart: Math.min(pair.depth, DEEPEST) * INDENT_PX }}
      data-kind={kind}
      data-status={status}
      data-relation={pair.relation}
    >
      <RouteLink
        to={compareRoute(places.left, places.right, { side, row: row.id })}
        data-pair={pair.id}
      >
        <Text>{nameOf(row)}</Text>
      </RouteLink>
      {hasState(kind) && <Status name={status} />}
      {durationUs !== undefined && <small>{durationText(durationUs)}</small>}
    </div>
  );
}

/** What differs between the rows of a pair, and what is known of each. */
export function PairPanel({ places, pair }: Omit<CellProps, "side">) {
  return (
    <>
      <CallDiffs places={places} pair={pair} />
      <Sides places={places} pair={pair} />
    </>
  );
}

function Sides({ places, pair }: Omit<CellProps, "side">) {
  return SIDES.map((side) => {
    const row = pair[side];
    const absent = pair.relation === "carried" ? COMPARE.carried : COMPARE.absent;
    return (
      <section key={side} className={styles.part} aria-label={COMPARE.sides[side]}>
        <h4>{COMPARE.sides[side]}</h4>
        {row === undefined ? <p>{absent}</p> : <RowPanel place={places[side]} row={row} />}
      </section>
    );
  });
}
