// The pending runs of all threads, in the order of their requests.
import { type Column, DataTable } from "@wattle/page/table";
import { api, ok, type Schemas } from "../api/client.ts";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time, timeText } from "../part/time.tsx";
import { runRoute, threadRoute } from "../router/links.tsx";
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
    value: ({ run }) => run,
    render: ({ thread, run, tenant }) => (
      <ThreadLink to={runRoute({ thread, run, tenant: tenant ?? undefined })} tenant={tenant}>
        <Text>{run}</Text>
      </ThreadLink>
    ),
  },
  {
    key: "thread",
    header: TEXTS.thread,
    value: ({ thread }) => thread,
    render: ({ thread, tenant }) => (
      <ThreadLink to={threadRoute(thread, tenant ?? undefined)} tenant={tenant}>
        <Text>{thread}</Text>
      </ThreadLink>
    ),
  },
  {
    key: "app",
    header: TEXTS.app,
    value: graphOf,
    render: (row) => <Text>{graphOf(row)}</Text>,
  },
  {
    key: "due",
    header: QUEUE.due,
    value: ({ due_ms }) => timeText(due_ms),
    render: ({ due_ms }) => <Time ms={due_ms} />,
  },
  {
    key: "requested",
    header: QUEUE.requested,
    value: ({ created_ms }) => timeText(created_ms),
    render: ({ created_ms }) => <Time ms={created_ms} />,
  },
  {
    key: "by",
    header: QUEUE.by,
    value: requester,
    render: (row) => <Text>{requester(row)}</Text>,
  },
];

const TENANT: Column<QueuedRun> = {
  key: "tenant",
  header: TEXTS.tenant,
  value: ({ tenant }) => tenant,
  render: ({ tenant }) => (tenant == null ? null : <Text>{tenant}</Text>),
};

/** Returns the columns, with that of tenants if there are any. */
function columnsOf(rows: readonly QueuedRun[]): readonly Column<QueuedRun>[] {
  return rows.some(({ tenant }) => tenant != null) ? [...COLUMNS, TENANT] : COLUMNS;
}

function graphOf({ app, graph }: QueuedRun): string {
  return graph == null ? app : `${app} / ${graph}`;
}

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
          <DataTable
            label={QUEUE.list}
            columns={columnsOf(rows)}
            rows={rows}
            rowKey={({ run }) => run}
          />
        )}
      </Paged>
    </>
  );
}
