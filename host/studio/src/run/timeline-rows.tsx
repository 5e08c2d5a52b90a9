// The timeline of a run with the panel of the selected row.
import { Button } from "@wattle/page";
import { useMemo, useState } from "react";
import { rowLink, useFocusAfter } from "../part/focus-after.ts";
import { Split } from "../part/split.tsx";
import { visible } from "../part/text.tsx";
import { toggled } from "../part/toggled.ts";
import { runRoute, useGo, useSearchOf } from "../router/links.tsx";
import { wholeNumber } from "../router/search.ts";
import { nameOf } from "./names.ts";
import { RowPanel } from "./panel.tsx";
import type { Row } from "./row.ts";
import styles from "./run.module.css";
import type { RunViewProps } from "./store.ts";
import { TEXTS } from "./texts.ts";
import type { Timeline } from "./timeline.ts";
import { TimelineView } from "./timeline-view.tsx";

/** The search parameters of the view: the sequence number of the shown event. */
const SEARCH = { at: wholeNumber };

/** The rows, and the panel of the selected one. */
export function TimelineRows({ place, store, version }: RunViewProps) {
  const { timeline } = store;
  const { at } = useSearchOf(SEARCH);
  const go = useGo();
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [isFollowing, setFollowing] = useState(at === undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline differs in each version.
  const rows = useMemo(() => timeline.rows(collapsed), [timeline, version, collapsed]);
  const index = at === undefined ? -1 : indexOf(rows, timeline.pathTo(Number(at)));
  const current = rows[index];
  const newest = isFollowing && !timeline.isOver ? rows.length - 1 : undefined;
  const close = () => go(runRoute(place), { replace: true });
  useFocusAfter(rowLink(current?.seq));
  return (
    <>
      <div className={styles.tools}>
        <Button onClick={() => setCollapsed(new Set())}>{TEXTS.expandAll}</Button>
        <Button onClick={() => setCollapsed(parentsIn(timeline))}>{TEXTS.collapseAll}</Button>
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
          place={place}
          rows={rows}
          current={current?.id}
          shown={current === undefined ? newest : index}
          onToggle={({ id }) => setCollapsed(toggled(collapsed, id))}
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

/** Returns the ids of all rows that have others below them. */
function parentsIn(timeline: Timeline): ReadonlySet<string> {
  const rows = timeline.rows().filter(({ childCount }) => childCount > 0);
  return new Set(rows.map(({ id }) => id));
}
