// The home view: the host, its apps, and what could not be loaded.
import { useQuery } from "@tanstack/react-query";
import { Panel } from "@wattle/page";
import { Guarded, useAccess } from "../access/access.tsx";
import { type App, useApps } from "../api/apps.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { useHealth } from "../api/health.ts";
import { Facts } from "../part/facts.tsx";
import { Panels } from "../part/panels.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { hostPath } from "../router/base.ts";
import { appRoute, RouteLink, threadsRoute } from "../router/links.tsx";
import { Failure, Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import styles from "./home.module.css";
import { TEXTS } from "./texts.ts";

/** Interval at which a visible tab reads the load problems, in milliseconds. */
const PROBLEMS_MS = 10_000;

export function HomePage() {
  useTitle(TEXTS.title);
  return (
    <Panels>
      <Host />
      <Apps />
      <Guarded need="operator">
        <Problems />
      </Guarded>
    </Panels>
  );
}

function Host() {
  const { version, instance, time_zone } = useAccess();
  const { data, error, refetch } = useHealth();
  const recovery = data?.recovery ?? undefined;
  return (
    <Panel title={TEXTS.host}>
      {error !== null && (
        <Failure error={error} what={TEXTS.healthUnread} onRetry={() => void refetch()} />
      )}
      <Facts
        facts={[
          [TEXTS.version, data?.version ?? version],
          [TEXTS.instance, data?.instance ?? instance],
          [TEXTS.zone, time_zone],
          [TEXTS.recovery, recovery && recoveryOf(recovery)],
          [TEXTS.problemCount, data?.problems],
        ]}
      />
    </Panel>
  );
}

function recoveryOf(recovery: Schemas["RecoveryDocument"]): string {
  const { recovered, found, set_aside, waiting } = recovery;
  return [
    TEXTS.recovered(recovered, found),
    ...(set_aside > 0 ? [TEXTS.setAside(set_aside)] : []),
    ...(waiting > 0 ? [TEXTS.waiting(waiting)] : []),
  ].join(", ");
}

function Apps() {
  const apps = useApps();
  const { data } = apps;
  return (
    <Panel title={TEXTS.apps}>
      <Reading of={apps} text={TEXTS.reading} />
      {data?.length === 0 && <p>{TEXTS.noApps}</p>}
      {data !== undefined && data.length > 0 && (
        <ul className={styles.apps} aria-label={TEXTS.apps}>
          {data.map((app) => (
            <li key={app.name}>
              <AppCard app={app} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function AppCard({ app }: { app: App }) {
  const { name, doc, version, graphs } = app;
  return (
    <article className={styles.app} data-app={name} aria-label={name}>
      <h3>
        <RouteLink to={appRoute(name)}>
          <Text>{name}</Text>
        </RouteLink>{" "}
        <small>{version}</small>
      </h3>
      <p>
        <Text>{doc}</Text>
      </p>
      <Facts facts={[[TEXTS.graphs, <Text key="graphs">{graphs.join(", ")}</Text>]]} />
      <p className={styles.links}>
        <RouteLink to={threadsRoute({ app: name })}>{TEXTS.threads}</RouteLink>
        <PageLink page={app.page ?? undefined} />
      </p>
    </article>
  );
}

/**
 * A link to the page of an app, if this address serves it. It opens in a tab that has no handle of
 * the studio.
 */
function PageLink({ page }: { page: Schemas["PageDocument"] | undefined }) {
  const { apps } = useAccess();
  if (page === undefined || !apps) return null;
  if (!page.built) return <span className={styles.note}>{TEXTS.unbuilt}</span>;
  const address = hostPath(page.path);
  if (address === undefined) return null;
  return (
    <a href={address} target="_blank" rel="noopener">
      <Text>{TEXTS.page(page.title)}</Text>
    </a>
  );
}

function Problems() {
  const { data, error, refetch } = useQuery({
    queryKey: ["problems"],
    queryFn: () => ok(api.GET("/api/v1/problems")),
    refetchInterval: PROBLEMS_MS,
  });
  return (
    <Panel title={TEXTS.problems}>
      {error !== null && <Failure error={error} onRetry={() => void refetch()} />}
      {data?.length === 0 && <p>{TEXTS.noProblems}</p>}
      <ul className={styles.problems} aria-label={TEXTS.problems}>
        {data?.map(({ path, at_ms, message }) => (
          <li key={path}>
            <strong>
              <Text>{path}</Text>
            </strong>{" "}
            <Time ms={at_ms} />
            <pre className={styles.message}>
              <Text>{message}</Text>
            </pre>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
