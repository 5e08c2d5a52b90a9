// The state of a run, step by step: the checkpoints that it made, and one of them.
import { SelectField } from "@wattle/page";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import type { RunPlace } from "../api/log.ts";
import { usePagedList } from "../api/pages.ts";
import { rowLink, useFocusAfter } from "../part/focus-after.ts";
import { Split } from "../part/split.tsx";
import { Text, visible } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { type Column, VirtualList } from "../part/virtual-list.tsx";
import { checkpointRoute, RouteLink, runViewRoute, useGo, useSearchOf } from "../router/links.tsx";
import { namespace, wholeNumber } from "../router/search.ts";
import { Failure } from "../shell/failure.tsx";
import { CheckpointView } from "./checkpoint.tsx";
import { type Checkpoint, type GraphPlace, NEWEST, readHistory } from "./read.ts";
import styles from "./state.module.css";
import { TEXTS } from "./texts.ts";

/** The search parameters of the view. */
const SEARCH = { ns: namespace, checkpoint: wholeNumber };

/** Name of the view in the address. */
const VIEW = "state";

/** Interval at which a visible tab reads the checkpoints of a run, in milliseconds. */
const INTERVAL_MS = 2_000;

interface StateViewProps {
  place: RunPlace;
  /** Namespaces of the subgraphs that the run has started so far. */
  graphs: readonly string[];
  isOver: boolean;
}

export function StateView({ place, graphs, isOver }: StateViewProps) {
  const { ns = "" } = useSearchOf(SEARCH);
  const go = useGo();
  const options = [
    { value: "", name: TEXTS.root },
    ...graphs.map((value) => ({ value, name: visible(value) })),
  ];
  // The address may name a graph that the run has not started yet.
  if (ns !== "" && !graphs.includes(ns)) options.push({ value: ns, name: visible(ns) });
  return (
    <>
      {options.length > 1 && (
        <div className={styles.tools}>
          <SelectField
            label={TEXTS.graph}
            value={ns}
            options={options}
            onChange={(ns) => go(runViewRoute(place, { view: VIEW, ns }))}
          />
        </div>
      )}
      <Steps key={ns} place={place} namespace={ns} isOver={isOver} />
    </>
  );
}

interface StepsProps {
  place: RunPlace;
  namespace: string;
  isOver: boolean;
}

function Steps({ place, namespace, isOver }: StepsProps) {
  const { thread, run, tenant } = place;
  const { checkpoint } = useSearchOf(SEARCH);
  const go = useGo();
  const graph = { thread, tenant, namespace };
  const ns = namespace;
  const { rows, isComplete, error, retry, more, onView } = usePagedList(
    ["history", thread, tenant, namespace, run],
    NEWEST,
    (cursor) => readHistory(graph, run, cursor),
    isOver ? Number.POSITIVE_INFINITY : INTERVAL_MS,
  );
  useLastReading(isOver, retry);
  const id = checkpoint === undefined ? undefined : Number(checkpoint);
  const index = rows?.findIndex((row) => row.id === id) ?? -1;
  useFocusAfter(rowLink(id));
  return (
    <>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {rows?.length === 0 && isComplete && <p>{TEXTS.noCheckpoints}</p>}
      <Split
        label={checkpoint === undefined ? TEXTS.checkpoint : TEXTS.title(checkpoint)}
        panel={checkpoint && <StepPanel key={checkpoint} place={graph} checkpoint={checkpoint} />}
        onClose={() => go(runViewRoute(place, { view: VIEW, ns }), { replace: true })}
      >
        <VirtualList
          label={TEXTS.checkpoints}
          columns={columnsOf((row) =>
            runViewRoute(place, { view: VIEW, ns, checkpoint: String(row.id) }),
          )}
          rows={rows ?? []}
          rowKey={NEWEST.id}
          isComplete={isComplete}
          onEnd={more}
          onView={onView}
          current={checkpoint}
          shown={index === -1 ? undefined : index}
        />
      </Split>
    </>
  );
}

/** Reads the checkpoints once more when the run has ended. */
function useLastReading(isOver: boolean, read: () => void): void {
  const [wasOver] = useState(isOver);
  const isRead = useRef(wasOver);
  const readLast = useEffectEvent(read);
  useEffect(() => {
    if (!isOver || isRead.current) return;
    isRead.current = true;
    readLast();
  }, [isOver]);
}

function StepPanel({ place, checkpoint }: { place: GraphPlace; checkpoint: string }) {
  return (
    <>
      <p>
        <RouteLink to={checkpointRoute(place, checkpoint, { ns: place.namespace })}>
          {TEXTS.open}
        </RouteLink>
      </p>
      <CheckpointView place={place} checkpoint={checkpoint} against={undefined} />
    </>
  );
}

function columnsOf(routeOf: (row: Checkpoint) => string): readonly Column<Checkpoint>[] {
  return [
    {
      key: "step",
      header: TEXTS.checkpoint,
      className: styles.step,
      render: (row) => (
        <RouteLink to={routeOf(row)} data-seq={row.id}>
          {`${row.id} · ${TEXTS.step(row.source, row.step)}`}
        </RouteLink>
      ),
    },
    {
      key: "changed",
      header: TEXTS.changed,
      render: ({ changed }) => <Text>{changed.join(", ")}</Text>,
    },
    {
      key: "next",
      header: TEXTS.next,
      className: styles.wide,
      render: ({ next }) => <Text>{next.join(", ")}</Text>,
    },
    {
      key: "time",
      header: TEXTS.time,
      className: `${styles.time} ${styles.wide}`,
      render: ({ at_ms }) => <Time ms={at_ms} />,
    },
  ];
}
