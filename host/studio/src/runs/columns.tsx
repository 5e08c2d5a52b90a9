// The columns of the list of runs.
import { ALL_TENANTS } from "../access/tenant.ts";
import { costText, tookText } from "../part/amount.ts";
import { FAILURE, GRAPH, STATUS, TENANT } from "../part/paged-list/columns.tsx";
import styles from "../part/paged-list/paged-list.module.css";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time } from "../part/time.tsx";
import type { Column } from "../part/virtual-list.tsx";
import { runRoute, threadRoute } from "../router/links.tsx";
import type { Run } from "./read.ts";
import { TEXTS } from "./texts.ts";

/**
 * Returns the columns of a list of a tenant. If the request for the list named the tenant, the links
 * of a run name its tenant, too.
 */
export function columnsOf(tenant: string | undefined): readonly Column<Run>[] {
  const isOfAll = tenant === ALL_TENANTS;
  const tenantOf = (run: Run) => (tenant === undefined ? undefined : (run.tenant ?? undefined));
  return [
    {
      key: "run",
      header: TEXTS.run,
      render: (row) => (
        <ThreadLink
          to={runRoute({ thread: row.thread, run: row.run, tenant: tenantOf(row) })}
          tenant={row.tenant}
        >
          <Text>{row.run}</Text>
        </ThreadLink>
      ),
    },
    {
      key: "thread",
      header: TEXTS.thread,
      className: styles.wide,
      render: (row) => (
        <ThreadLink to={threadRoute(row.thread, tenantOf(row))} tenant={row.tenant}>
          <Text>{row.thread}</Text>
        </ThreadLink>
      ),
    },
    ...(isOfAll ? [TENANT] : []),
    STATUS,
    GRAPH,
    // A telephone has no room for it beside the tenant.
    isOfAll ? { ...REQUESTED, className: `${styles.time} ${styles.wide}` } : REQUESTED,
    DURATION,
    COST,
    FAILURE,
  ];
}

const REQUESTED: Column<Run> = {
  key: "requested",
  header: TEXTS.requested,
  className: styles.time,
  render: ({ created_ms }) => <Time ms={created_ms} />,
};

const DURATION: Column<Run> = {
  key: "duration",
  header: TEXTS.duration,
  className: `${styles.amount} ${styles.wide}`,
  render: ({ started_ms, ended_ms }) => tookText(started_ms, ended_ms),
};

const COST: Column<Run> = {
  key: "cost",
  header: TEXTS.cost,
  className: `${styles.amount} ${styles.wide}`,
  render: ({ cost }) => cost != null && costText(cost),
};
