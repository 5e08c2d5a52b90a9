// The list of threads of the host, newest update first.
import { Button } from "@wattle/page";
import { useEffect, useEffectEvent } from "react";
import { useAccess } from "../access/access.tsx";
import type { List } from "../api/pages.ts";
import { VirtualList } from "../part/virtual-list.tsx";
import { RouteLink, threadsRoute, useSearchOf } from "../router/links.tsx";
import { Failure } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { useChanged } from "./changed.ts";
import { columnsOf } from "./columns.tsx";
import { FILTER, queryOf, type ThreadQuery } from "./filter.ts";
import { ThreadFilters } from "./filters.tsx";
import { ORDER, type Thread, useThreads } from "./read.ts";
import { TEXTS } from "./texts.ts";
import styles from "./threads.module.css";

export function ThreadsPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const query = queryOf(filter, useAccess());
  return (
    <div className={styles.page}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <ThreadFilters filter={filter} query={query} />
      <Threads key={JSON.stringify(query)} query={query} />
    </div>
  );
}

function Threads({ query }: { query: ThreadQuery }) {
  const list = useThreads(query);
  const { rows, isComplete, error, retry, more } = list;
  const changed = useChanged(rows, ORDER);
  return (
    <>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {error === null && rows === undefined && <p role="status">{TEXTS.reading}</p>}
      {rows?.length === 0 && isComplete && <None query={query} />}
      {rows !== undefined && rows.length > 0 && (
        <VirtualList
          label={TEXTS.list}
          columns={columnsOf(query.tenant)}
          rows={rows}
          rowKey={ORDER.id}
          isMarked={(row) => changed.has(ORDER.id(row))}
          isComplete={isComplete}
          onEnd={more}
        />
      )}
      <Rest list={list} />
    </>
  );
}

function None({ query }: { query: ThreadQuery }) {
  const { tenant: _, ...conditions } = query;
  if (Object.keys(conditions).length === 0) return <p>{TEXTS.none}</p>;
  return (
    <p>
      {TEXTS.noneMatch} <RouteLink to={threadsRoute()}>{TEXTS.clear}</RouteLink>
    </p>
  );
}

/** What is known of the threads after the rows, if the host has not examined all of them. */
function Rest({ list }: { list: List<Thread> }) {
  const { rows, isComplete, isStopped, more } = list;
  if (rows === undefined || isComplete) return null;
  if (!isStopped) return rows.length === 0 ? <Searching onShown={more} /> : null;
  return (
    <p className={styles.rest}>
      {TEXTS.stopped} <Button onClick={more}>{TEXTS.further}</Button>
    </p>
  );
}

/** Says that older threads are searched, and begins with it. */
function Searching({ onShown }: { onShown: () => void }) {
  const begin = useEffectEvent(onShown);
  useEffect(() => begin(), []);
  return <p role="status">{TEXTS.searching}</p>;
}
