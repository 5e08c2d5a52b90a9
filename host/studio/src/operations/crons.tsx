// The schedules that create runs.
import { api, ok, type Schemas } from "../api/client.ts";
import { Facts, textFact, timeFact } from "../part/facts.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time } from "../part/time.tsx";
import { graphRoute, RouteLink, runRoute, threadRoute } from "../router/links.tsx";
import type { OperationsFilter } from "./filter.ts";
import { Filters } from "./filters.tsx";
import { Paged } from "./list.tsx";
import styles from "./operations.module.css";
import { usePages } from "./read.ts";
import { CRONS, TEXTS } from "./texts.ts";

type Cron = Schemas["CronDocument"];

export function Crons({ filter }: { filter: OperationsFilter }) {
  const list = usePages(["crons"], filter.tenant, (query) =>
    ok(api.GET("/api/v1/crons", { params: { query } })),
  );
  return (
    <>
      <Filters filter={filter} />
      <Paged list={list} none={list.isComplete ? CRONS.none : TEXTS.noneFound}>
        {(rows) => (
          <ul className={styles.items} aria-label={CRONS.list}>
            {rows.map((cron) => (
              <li key={cron.cron}>
                <CronItem cron={cron} />
              </li>
            ))}
          </ul>
        )}
      </Paged>
    </>
  );
}

function CronItem({ cron }: { cron: Cron }) {
  const { schedule, timezone, next_ms, is_enabled, thread, tenant } = cron;
  return (
    <article className={styles.item} data-cron={cron.cron}>
      <h4>
        <Text>{schedule}</Text> {!is_enabled && <Status name={CRONS.disabled} />}
      </h4>
      <Facts
        facts={[
          [TEXTS.graph, <Graph key="graph" cron={cron} />],
          [CRONS.next, timeFact(next_ms) ?? CRONS.noNext],
          [CRONS.last, <LastRun key="last" cron={cron} />],
          [CRONS.zone, textFact(timezone) ?? "UTC"],
          [CRONS.end, timeFact(cron.end_ms)],
          [TEXTS.thread, thread == null ? undefined : <Thread key="thread" cron={cron} />],
          [TEXTS.tenant, textFact(tenant)],
          [CRONS.assistant, textFact(cron.assistant)],
          [TEXTS.created, timeFact(cron.created_ms)],
        ]}
      />
    </article>
  );
}

function Graph({ cron: { app, graph } }: { cron: Cron }) {
  if (app == null || graph == null) return CRONS.unloaded;
  return (
    <RouteLink to={graphRoute(app, graph)}>
      <Text>{`${app} / ${graph}`}</Text>
    </RouteLink>
  );
}

function Thread({ cron: { thread, tenant } }: { cron: Cron }) {
  if (thread == null) return null;
  return (
    <ThreadLink to={threadRoute(thread, tenant ?? undefined)} tenant={tenant}>
      <Text>{thread}</Text>
    </ThreadLink>
  );
}

function LastRun({ cron: { last, thread, tenant } }: { cron: Cron }) {
  if (last == null) return CRONS.noLast;
  // A run without a thread of the cron has one of its own, with the same id.
  const place = { thread: thread ?? last.run, run: last.run, tenant: tenant ?? undefined };
  return (
    <ThreadLink to={runRoute(place)} tenant={tenant}>
      <Time ms={last.due_ms} />
    </ThreadLink>
  );
}
