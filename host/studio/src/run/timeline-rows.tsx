// The timeline of a run with the panel of the selected row.
import { Button } from "@wattle/page";
import { useMemo, useState } from "react";
import { useFocusAfter } from "../part/focus-after.ts";
import { Split } from "../part/split.tsx";
import { visible } from "../part/text.tsx";
import { runRoute, runViewRoute, useGo, useSearchOf } from "../router/links.tsx";
import { wholeNumber } from "../router/search.ts";
import { ClosedRows, closedRows } from "./closed-rows.ts";
import { nameOf } from "./names.ts";
import { RowPanel } from "./panel.tsx";
import { idOf, numberOf } from "./places.ts";
import type { Row } from "./row.ts";
import styles from "./run.module.css";
import type { RunViewProps } from "./store.ts";
import { TEXTS } from "./texts.ts";
import { TimelineView } from "./timeline-view.tsx";

/**
 * The search parameters of the view: the sequence number of the shown event, the number of the
 * selected row if it is not that of the event, and the closed rows.
 */
const SEARCH = { at: wholeNumber, row: wholeNumber, closed: closedRows };

/** The rows, and the panel of the selected one. */
export function TimelineRows({ place, store, version }: RunViewProps) {
  const { timeline } = store;
  const { at, row, closed } = useSearchOf(SEARCH);
  const go = useGo();
  const collapsed = useMemo(() => ClosedRows.of(closed), [closed]);
  const [isFollowing, setFollowing] = useState(at === undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline differs in each version.
  const rows = useMemo(() => timeline.rows(collapsed), [timeline, version, collapsed]);
  const index =
    at === undefined ? -1 : indexOf(rows, timeline.pathTo(Number(at), row && idOf(row)));
  const current = rows[index];
  const newest = isFollowing && !timeline.isOver ? rows.length - 1 : undefined;
  const close = () => go(runRoute(place, undefined, { closed }), { replace: true });
  const collapse = ({ text }: ClosedRows) =>
    go(runViewRoute(place, { closed: text, row, at }), { replace: true });
  const routeOf = ({ id, seq }: Row) => {
    const own = timeline.rowOf(seq) === id ? undefined : numberOf(id);
    return runRoute(place, seq, { closed, row: own });
  };
  useFocusAfter(current && `a[data-row="${current.id}"]`);
  return (
    <>
      <div className={styles.tools}>
        <Button onClick={() => collapse(ClosedRows.NONE)}>{TEXTS.expandAll}</Button>
        <Button onClick={() => collapse(ClosedRows.ALL)}>{TEXTS.collapseAll}</Button>
        {!timeline.isOver && (
          <Button aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            {TEXTS.newest}
          </Button>
        )}
      </div>
      <Split
        label={current === undefined ? TEXTS.event : visible(nameOf(current))}
        panel={
          current && (
            <RowPanel
              key={current.id}
              place={place}
              row={current}
              sums={timeline.sumsOf(current.id)}
            />
          )
        }
        onClose={close}
      >
        <TimelineView
          routeOf={routeOf}
          rows={rows}
          current={current?.id}
          shown={current === undefined ? newest : index}
          onToggle={({ id }) => collapse(collapsed.toggled(id))}
        />
      </Split>
    </>
  );
}

/** Returns the index of the innermost row of a path that is shown; -1 if there is none. */
function indexOf(rows: readonly Row[], path: readonly string[]): number {
  if (path.length === 0) return -1;
  const depths = new Map(path.map((id, depth) => [id, depth]));
  let [found, deepest] = [-1, -1];
  for (const [index, { id }] of rows.entries()) {
    const depth = depths.get(id) ?? -1;
    if (depth > deepest) [found, deepest] = [index, depth];
  }
  return found;
}
