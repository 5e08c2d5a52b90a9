// The columns of the list of threads.
import { ALL_TENANTS } from "../access/tenant.ts";
import { cut } from "../part/cut.ts";
import { TEXTS as FILTERS } from "../part/filters/texts.ts";
import { FAILURE, GRAPH, STATUS, TENANT } from "../part/paged-list/columns.tsx";
import styles from "../part/paged-list/paged-list.module.css";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time } from "../part/time.tsx";
import type { Column } from "../part/virtual-list.tsx";
import { threadRoute } from "../router/links.tsx";
import type { Thread } from "./read.ts";
import { TEXTS } from "./texts.ts";

/**
 * Returns the columns of a list of a tenant. If the request for the list named the tenant, the link
 * of a thread names its tenant, too.
 */
export function columnsOf(tenant: string | undefined): readonly Column<Thread>[] {
  const isNamed = tenant !== undefined;
  const isOfAll = tenant === ALL_TENANTS;
  return [
    {
      key: "thread",
      header: TEXTS.thread,
      render: ({ thread_id, tenant }) => (
        <ThreadLink
          to={threadRoute(thread_id, isNamed ? (tenant ?? undefined) : undefined)}
          tenant={tenant}
        >
          <Text>{thread_id}</Text>
        </ThreadLink>
      ),
    },
    ...(isOfAll ? [TENANT] : []),
    STATUS,
    GRAPH,
    // A telephone has no room for it beside the tenant.
    isOfAll ? { ...UPDATED, className: WIDE_TIME } : UPDATED,
    CREATED,
    METADATA,
    FAILURE,
  ];
}

/** Characters of its metadata that a row can show. */
const SHOWN_CHARS = 300;

const METADATA: Column<Thread> = {
  key: "metadata",
  header: FILTERS.metadata,
  className: styles.extra,
  render: ({ metadata = {} }) =>
    Object.keys(metadata).length > 0 && <Text>{cut(JSON.stringify(metadata), SHOWN_CHARS)}</Text>,
};

const WIDE_TIME = `${styles.time} ${styles.wide}`;

const UPDATED: Column<Thread> = {
  key: "updated",
  header: TEXTS.updated,
  className: styles.time,
  render: ({ updated_ms }) => <Time ms={updated_ms} />,
};

const CREATED: Column<Thread> = {
  key: "created",
  header: TEXTS.created,
  className: WIDE_TIME,
  render: ({ created_ms }) => <Time ms={created_ms} />,
};
