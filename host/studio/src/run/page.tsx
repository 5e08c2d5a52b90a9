// A run: its facts, its timeline, and what is known of the selected row.
import { useQuery } from "@tanstack/react-query";
import { Alert, ApiError, Button } from "@wattle/page";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import type { RunPlace } from "../api/log.ts";
import { countText, durationText } from "../part/amount.ts";
import { type Fact, Facts } from "../part/facts.tsx";
import { Split } from "../part/split.tsx";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import {
  RouteLink,
  runRoute,
  threadRoute,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name, wholeNumber } from "../router/search.ts";
import { useTitle } from "../shell/title.ts";
import { RowPanel } from "./panel.tsx";
import type { Row } from "./row.ts";
import styles from "./run.module.css";
import { RunStore } from "./store.ts";
import { TEXTS } from "./texts.ts";
import type { Timeline } from "./timeline.ts";
import { nameOf, TimelineView } from "./timeline-view.tsx";

type Run = Schemas["RunDocument"];

/** The search parameters of the view: the sequence number of the shown event, and the tenant. */
const SEARCH = { at: wholeNumber, tenant: name };

/** Interval at which a visible tab reads a run that has not ended, in milliseconds. */
const INTERVAL_MS = 5_000;

export default function RunPage() {
  const [thread, run] = [useParam("thread"), useParam("run")];
  const { tenant } = useSearchOf(SEARCH);
  // Another run is another view.
  const key = JSON.stringify([thread, run, tenant]);
  return <RunView key={key} place={{ thread, run, tenant }} />;
}

function RunView({ place }: { place: RunPlace }) {
  const { thread, run, tenant } = place;
  useTitle(TEXTS.title(visible(run)));
  const [store] = useState(() => new RunStore(place));
  const state = useSyncExternalStore(store.watch, store.state);
  useEffect(() => {
    store.start();
    return () => store.stop();
  }, [store]);
  const { timeline } = store;
  return (
    <div className={styles.run} data-phase={state.phase}>
      <div className={styles.head}>
        <RouteLink to={threadRoute(thread, tenant)}>
          <Text>{TEXTS.back(thread)}</Text>
        </RouteLink>
        <h2>
          <Text>{TEXTS.title(run)}</Text>
        </h2>
      </div>
      {state.error !== undefined && <Failure error={state.error} onRetry={() => store.start()} />}
      <Summary place={place} timeline={timeline} />
      <p role="status">{TEXTS.phases[state.phase]}</p>
      <Rows place={place} timeline={timeline} version={state.version} />
    </div>
  );
}

function Failure({ error, onRetry }: { error: Error; onRetry: () => void }) {
  const isMissing = error instanceof ApiError && error.status === 404;
  const text = isMissing ? TEXTS.notFound : error.message;
  return <Alert actions={<Button onClick={onRetry}>{TEXTS.retry}</Button>}>{text}</Alert>;
}

/** What is known of the run as a whole. */
function Summary({ place, timeline }: { place: RunPlace; timeline: Timeline }) {
  const { facts, isOver } = timeline;
  const { data } = useQuery({
    queryKey: ["run", place.run, place.tenant],
    queryFn: () => readRun(place),
    // The events of a run say when it ends. A run that waits for its turn has none.
    refetchInterval: isOver ? false : INTERVAL_MS,
  });
  const status = facts.status ?? data?.status;
  const { calls, input, output } = timeline.totals();
  return (
    <>
      <div className={styles.summary}>
        {status !== undefined && <Status name={status} />}
        <span>{`${TEXTS.calls}: ${countText(calls)}`}</span>
        <span>{`${TEXTS.tokens}: ${TEXTS.tokensText(input, output)}`}</span>
      </div>
      {status === "pending" && <p>{TEXTS.waiting}</p>}
      {facts.failure !== undefined && (
        <Alert>
          {TEXTS.failure}: {visible(`${facts.failure.code}: ${facts.failure.message}`)}
        </Alert>
      )}
      <details className={styles.facts}>
        <summary>{TEXTS.facts}</summary>
        <Facts facts={factsOf(timeline, data)} />
      </details>
    </>
  );
}

function readRun({ run, tenant }: RunPlace): Promise<Run> {
  const params = { path: { run } };
  return ok(api.GET("/api/v1/runs/{run}", { params, headers: tenantHeaders(tenant) }));
}

function factsOf(timeline: Timeline, run: Run | undefined): Fact[] {
  const { graph, reason, digest, startedMs, endedMs, recoveries, isDrained } = timeline.facts;
  const { modelCalls, guestUs, providerUs } = timeline.totals();
  const time = (ms: number | null | undefined) => ms != null && <Time ms={ms} />;
  const took =
    startedMs === undefined || endedMs === undefined ? undefined : (endedMs - startedMs) * 1_000;
  const facts: Fact[] = [
    [TEXTS.graph, graph && <Text>{graph}</Text>],
    [TEXTS.reason, reason && <Text>{reason}</Text>],
    [TEXTS.version, digest?.slice(0, 12)],
    [TEXTS.requested, time(run?.created_ms)],
    [TEXTS.started, time(startedMs)],
    [TEXTS.ended, time(endedMs)],
    [TEXTS.duration, took !== undefined && durationText(took)],
    [TEXTS.modelCalls, countText(modelCalls)],
    [TEXTS.guestTime, durationText(guestUs)],
    [TEXTS.providerTime, durationText(providerUs)],
    [TEXTS.recoveries, recoveries > 0 && countText(recoveries)],
    [TEXTS.drained, isDrained && TEXTS.yes],
  ];
  return facts.filter(([, value]) => value !== false);
}

interface RowsProps {
  place: RunPlace;
  timeline: Timeline;
  version: number;
}

/** The rows, and the panel of the selected one. */
function Rows({ place, timeline, version }: RowsProps) {
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
  useFocusAfter(current?.seq);
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
        panel={current && <RowPanel key={current.id} place={place} row={current} />}
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

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
}

/** Moves the focus back to the row of an event when the event is not shown any more. */
function useFocusAfter(seq: number | undefined): void {
  const before = useRef<number>(undefined);
  useEffect(() => {
    const left = seq === undefined ? before.current : undefined;
    before.current = seq;
    if (left === undefined) return;
    document.querySelector<HTMLElement>(`a[data-seq="${left}"]`)?.focus();
  }, [seq]);
}
