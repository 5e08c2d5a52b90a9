// The events of a run, one line each, and one of them in full.
import { SelectField } from "@wattle/page";
import { useMemo } from "react";
import type { RunPlace } from "../api/log.ts";
import { Blobs } from "../part/blob/blob.tsx";
import { rowLink, useFocusAfter } from "../part/focus-after.ts";
import { optionsOf } from "../part/options.ts";
import { Split } from "../part/split.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { type Column, VirtualList } from "../part/virtual-list.tsx";
import { RouteLink, runViewRoute, useGo, useSearchOf } from "../router/links.tsx";
import { name, wholeNumber } from "../router/search.ts";
import { Log } from "../thread/log.tsx";
import { Document, ReadEvent } from "./event.tsx";
import type { LogLine } from "./log-line.ts";
import styles from "./run.module.css";
import type { RunViewProps } from "./store.ts";
import { LOG, PANEL } from "./texts.ts";

/** The search parameters of the view: the shown event, and the only type of events. */
const SEARCH = { at: wholeNumber, type: name };

/** Name of the view in the address. */
const VIEW = "log";

export function LogView({ place, store, version }: RunViewProps) {
  const { at, type } = useSearchOf(SEARCH);
  const go = useGo();
  const { lines } = store;
  // biome-ignore lint/correctness/useExhaustiveDependencies: there are more lines in each version.
  const rows = useMemo(
    () => (type === undefined ? [...lines] : lines.filter((line) => line.type === type)),
    [lines, version, type],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: there are more lines in each version.
  const types = useMemo(() => [...new Set(lines.map(({ type }) => type))], [lines, version]);
  const index = at === undefined ? -1 : rows.findIndex(({ seq }) => seq === Number(at));
  useFocusAfter(rowLink(at === undefined ? undefined : Number(at)));
  return (
    <>
      <div className={styles.tools}>
        <SelectField
          label={LOG.type}
          value={type ?? ""}
          options={optionsOf(LOG.all, types, type)}
          onChange={(type) => go(runViewRoute(place, { view: VIEW, type }))}
        />
      </div>
      {rows.length === 0 && lines.length > 0 && <p>{LOG.none}</p>}
      <Split
        label={at === undefined ? LOG.event : LOG.title(at)}
        panel={at && <EventPanel key={at} place={place} seq={Number(at)} />}
        onClose={() => go(runViewRoute(place, { view: VIEW, type }), { replace: true })}
      >
        <VirtualList
          label={LOG.log}
          columns={columnsOf((at) => runViewRoute(place, { view: VIEW, type, at }))}
          rows={rows}
          rowKey={keyOf}
          isComplete
          current={at}
          shown={index === -1 ? undefined : index}
        />
      </Split>
      <details className={styles.facts}>
        <summary>{LOG.thread}</summary>
        <Log thread={place.thread} tenant={place.tenant} />
      </details>
    </>
  );
}

function keyOf({ seq }: LogLine): string {
  return String(seq);
}

function EventPanel({ place, seq }: { place: RunPlace; seq: number }) {
  return (
    <ReadEvent place={place} seq={seq}>
      {(event) => (
        <>
          <Document title={PANEL.event} value={event} bytes={undefined} />
          <Blobs thread={place.thread} tenant={place.tenant} value={event} />
        </>
      )}
    </ReadEvent>
  );
}

function columnsOf(routeOf: (at: string) => string): readonly Column<LogLine>[] {
  return [
    {
      key: "type",
      header: LOG.event,
      className: styles.type,
      render: ({ seq, type }) => (
        <RouteLink to={routeOf(String(seq))} data-seq={seq}>
          {`${seq} · ${type}`}
        </RouteLink>
      ),
    },
    {
      key: "node",
      header: LOG.node,
      className: `${styles.node} ${styles.wide}`,
      render: ({ node }) => <Text>{node}</Text>,
    },
    { key: "text", header: LOG.text, render: ({ text }) => <Text>{text}</Text> },
    {
      key: "time",
      header: LOG.time,
      className: `${styles.time} ${styles.wide}`,
      render: ({ atMs }) => <Time ms={atMs} />,
    },
  ];
}
