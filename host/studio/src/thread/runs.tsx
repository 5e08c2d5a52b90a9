// The runs of a thread, newest first.
import { Button, Panel } from "@wattle/page";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { type Order, type Page, usePagedList } from "../api/pages.ts";
import { costText } from "../part/amount.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { RouteLink, runRoute } from "../router/links.tsx";
import { Failure } from "../shell/failure.tsx";
import { TEXTS } from "./texts.ts";
import styles from "./thread.module.css";

type Run = Schemas["RunDocument"];

/** Number of runs in a page. Few threads have more. */
const PAGE_SIZE = 50;

const ORDER: Order<Run> = { id: ({ run }) => run, time: ({ created_ms }) => created_ms ?? 0 };

interface RunsProps {
  thread: string;
  tenant: string | undefined;
}

export function Runs({ thread, tenant }: RunsProps) {
  const { rows, isComplete, error, retry, more } = usePagedList(
    ["runs", thread, tenant],
    ORDER,
    (cursor) => readRuns({ thread, tenant }, cursor),
  );
  return (
    <Panel title={TEXTS.runs}>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {rows?.length === 0 && <p>{TEXTS.noRuns}</p>}
      <ul className={styles.items} aria-label={TEXTS.runsList}>
        {rows?.map((run) => (
          <li key={run.run}>
            <RouteLink to={runRoute({ thread, run: run.run, tenant })}>
              <Text>{run.run}</Text>
            </RouteLink>
            <Status name={run.status} />
            {run.created_ms != null && <Time ms={run.created_ms} />}
            {run.failure != null && <Text>{run.failure.code}</Text>}
            {run.cost != null && <span>{TEXTS.cost(costText(run.cost))}</span>}
          </li>
        ))}
      </ul>
      {!isComplete && rows !== undefined && <Button onClick={more}>{TEXTS.moreRuns}</Button>}
    </Panel>
  );
}

/** Returns the page of runs at a cursor, which is the number of runs before it. */
async function readRuns(
  { thread, tenant }: RunsProps,
  cursor: string | undefined,
): Promise<Page<Run>> {
  const offset = Number(cursor ?? 0);
  const params = { path: { thread }, query: { limit: PAGE_SIZE, offset, order: "newest" } };
  const headers = tenantHeaders(tenant);
  const items = await ok(api.GET("/api/v1/threads/{thread}/runs", { params, headers }));
  // The host shortens a page only if its runs have more than 80 KiB each.
  const isFull = items.length >= PAGE_SIZE;
  return { items, next: isFull ? String(offset + items.length) : undefined, isFull };
}
