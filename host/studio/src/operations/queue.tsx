// The pending runs of all threads, in the order of their requests.
import { type Column, DataTable } from "@wattle/page/table";
import { api, ok, type Schemas } from "../api/client.ts";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { RouteLink, runRoute, threadRoute } from "../router/links.tsx";
import type { OperationsFilter } from "./filter.ts";
import { AppFilter, Filters } from "./filters.tsx";
import { Paged } from "./list.tsx";
import { usePages } from "./read.ts";
import { QUEUE, TEXTS } from "./texts.ts";

type QueuedRun = Schemas["QueuedRunDocument"];

const COLUMNS: readonly Column<QueuedRun>[] = [
  {
    key: "run",
    header: TEXTS.run,
    render: ({ thread, run, tenant }) => (
      <RouteLink to={runRoute({ thread, run, tenant: tenant ?? undefined })}>
        <Text>{run}</Text>
      </RouteLink>
    ),
  },
  {
    key: "thread",
    header: TEXTS.thread,
    render: ({ thread, tenant }) => (
      <RouteLink to={threadRoute(thread, tenant ?? undefined)}>
        <Text>{thread}</Text>
      </RouteLink>
    ),
  },
  {
    key: "app",
    header: TEXTS.app,
    render: ({ app, graph }) => <Text>{graph == null ? app : `${app} / ${graph}`}</Text>,
  },
  {
    key: "tenant",
    header: TEXTS.tenant,
    render: ({ tenant }) => (tenant == null ? null : <Text>{tenant}</Text>),
  },
  { key: "due", header: QUEUE.due, render: ({ due_ms }) => <Time ms={due_ms} /> },
  {
    key: "requested",
    header: QUEUE.requested,
    render: ({ created_ms }) => <Time ms={created_ms} />,
  },
  { key: "by", header: QUEUE.by, render: (run) => <Text>{requester(run)}</Text> },
];

function requester({ key, user }: QueuedRun): string {
  const parts = [
    ...(user == null ? [] : [QUEUE.byUser(user)]),
    ...(key == null ? [] : [QUEUE.byKey(key)]),
  ];
  return parts.join(", ");
}

export function Queue({ filter }: { filter: OperationsFilter }) {
  const { app, tenant } = filter;
  const list = usePages(["queue", app], tenant, (page) => {
    const query = { ...page, ...(app === undefined ? {} : { app }) };
    return ok(api.GET("/api/v1/queue", { params: { query } }));
  });
  return (
    <>
      <Filters filter={filter}>
        <AppFilter filter={filter} />
      </Filters>
      <Paged list={list} none={list.isComplete ? QUEUE.none : QUEUE.noneFound}>
        {(rows) => (
          <DataTable label={QUEUE.list} columns={COLUMNS} rows={rows} rowKey={({ run }) => run} />
        )}
      </Paged>
    </>
  );
}
