// The columns of the list of threads.
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import type { Column } from "../part/virtual-list.tsx";
import { RouteLink, threadRoute } from "../router/links.tsx";
import { ALL_TENANTS } from "./filter.ts";
import type { Thread } from "./read.ts";
import { TEXTS } from "./texts.ts";
import styles from "./threads.module.css";

/**
 * Returns the columns of a list of a tenant. If the request for the list named the tenant, the link
 * of a thread names its tenant, too.
 */
export function columnsOf(tenant: string | undefined): readonly Column<Thread>[] {
  const isNamed = tenant !== undefined;
  return [
    {
      key: "thread",
      header: TEXTS.thread,
      render: ({ thread_id, tenant }) => (
        <RouteLink to={threadRoute(thread_id, isNamed ? (tenant ?? undefined) : undefined)}>
          <Text>{thread_id}</Text>
        </RouteLink>
      ),
    },
    ...(tenant === ALL_TENANTS ? [TENANT] : []),
    ...OTHERS,
  ];
}

const TENANT: Column<Thread> = {
  key: "tenant",
  header: TEXTS.tenant,
  className: styles.tenant,
  render: ({ tenant }) => tenant != null && <Text>{tenant}</Text>,
};

const OTHERS: readonly Column<Thread>[] = [
  {
    key: "status",
    header: TEXTS.status,
    className: styles.status,
    render: ({ status, failure }) => (
      <>
        <Status name={status} /> {failure != null && <Text>{failure.code}</Text>}
      </>
    ),
  },
  {
    key: "graph",
    header: TEXTS.appAndGraph,
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
