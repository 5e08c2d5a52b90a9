// The list of threads of the host, newest update first.
import { Alert, Button } from "@wattle/page";
import { useAccess } from "../access/access.tsx";
import { missingIn } from "../access/unauthorized.ts";
import { type List, usePagedList } from "../api/pages.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { type Column, VirtualList } from "../part/virtual-list.tsx";
import { RouteLink, threadRoute, threadsRoute, useSearchOf } from "../router/links.tsx";
import { useTitle } from "../shell/title.ts";
import { FILTER, type ThreadFilter } from "./filter.ts";
import { ThreadFilters } from "./filters.tsx";
import { ORDER, readThreads, type Thread } from "./read.ts";
import { TEXTS } from "./texts.ts";
import styles from "./threads.module.css";

export function ThreadsPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const { tenant_header } = useAccess();
  // The header is part of the key, because the tenant has an effect only with it.
  const list = usePagedList(["threads", filter, tenant_header], ORDER, (cursor) =>
    readThreads(filter, cursor),
  );
  return (
    <div className={styles.page}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <ThreadFilters filter={filter} />
      <Threads list={list} filter={filter} />
    </div>
  );
}

function Threads({ list, filter }: { list: List<Thread>; filter: ThreadFilter }) {
  const { rows, isComplete, error, retry, more } = list;
  return (
    <>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {error === null && rows === undefined && <p role="status">{TEXTS.reading}</p>}
      {rows?.length === 0 && <None filter={filter} />}
      {rows !== undefined && rows.length > 0 && (
        <VirtualList
          label={TEXTS.list}
          columns={columnsOf(filter.tenant)}
          rows={rows}
          rowKey={ORDER.id}
          isComplete={isComplete}
          onEnd={more}
        />
      )}
    </>
  );
}

function Failure({ error, onRetry }: { error: Error; onRetry: () => void }) {
  if (missingIn(error)?.what === "tenant") {
    return <Alert kind="warning">{TEXTS.tenantNeeded}</Alert>;
  }
  return <Alert actions={<Button onClick={onRetry}>{TEXTS.retry}</Button>}>{error.message}</Alert>;
}

function None({ filter }: { filter: ThreadFilter }) {
  if (Object.keys(filter).length === 0) return <p>{TEXTS.none}</p>;
  return (
    <p>
      {TEXTS.noneMatch} <RouteLink to={threadsRoute()}>{TEXTS.clear}</RouteLink>
    </p>
  );
}

/** Returns the columns. The link of a thread names the tenant that the filter named. */
function columnsOf(tenant: string | undefined): readonly Column<Thread>[] {
  return [
    {
      key: "thread",
      header: TEXTS.thread,
      render: ({ thread_id }) => (
        <RouteLink to={threadRoute(thread_id, tenant)}>
          <Text>{thread_id}</Text>
        </RouteLink>
      ),
    },
    {
      key: "status",
      header: TEXTS.status,
      className: styles.status,
      render: ({ status }) => <Status name={status} />,
    },
    {
      key: "graph",
      header: TEXTS.graph,
      className: styles.wide,
      render: ({ app, graph }) => <Text>{`${app} / ${graph}`}</Text>,
    },
    {
      key: "updated",
      header: TEXTS.updated,
      className: styles.time,
      render: ({ updated_ms }) => <Time ms={updated_ms} />,
    },
    {
      key: "created",
      header: TEXTS.created,
      className: `${styles.time} ${styles.wide}`,
      render: ({ created_ms }) => <Time ms={created_ms} />,
    },
  ];
}
