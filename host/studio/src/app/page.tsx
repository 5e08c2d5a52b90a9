// An app with its graphs.
import { useQuery } from "@tanstack/react-query";
import { Panel } from "@wattle/page";
import { Fragment } from "react";
import { useAccess } from "../access/access.tsx";
import { may } from "../access/scope.ts";
import type { App } from "../api/apps.ts";
import { api, ok } from "../api/client.ts";
import { isMissing } from "../api/missing.ts";
import { digestText } from "../part/digest.ts";
import { Facts, textFact } from "../part/facts.tsx";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import {
  graphRoute,
  playRoute,
  pluginRoute,
  RouteLink,
  threadsRoute,
  useParam,
} from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import styles from "./app.module.css";
import { TEXTS } from "./texts.ts";

/** Interval at which a visible tab reads the app, in milliseconds. */
const INTERVAL_MS = 10_000;

export default function AppPage() {
  const app = useParam("app");
  useTitle(TEXTS.title(visible(app)));
  const read = useQuery({
    queryKey: ["app", app],
    queryFn: () => ok(api.GET("/api/v1/apps/{app}", { params: { path: { app } } })),
    refetchInterval: INTERVAL_MS,
  });
  const { data, error } = read;
  return (
    <Panels>
      <h2>
        <Text>{app}</Text>
      </h2>
      <Reading of={read} notFound={TEXTS.notFound} text={TEXTS.reading} />
      {data !== undefined && !isMissing(error) && <Parts app={data} />}
    </Panels>
  );
}

/** The plugins of an app, which lead to their views for the operator. */
function Plugins({ app, plugins }: { app: string; plugins: readonly string[] }) {
  const isOperator = may(useAccess(), "operator");
  return plugins.map((plugin, index) => (
    <Fragment key={plugin}>
      {index > 0 && ", "}
      {isOperator ? (
        <RouteLink to={pluginRoute(plugin, app)}>
          <Text>{plugin}</Text>
        </RouteLink>
      ) : (
        <Text>{plugin}</Text>
      )}
    </Fragment>
  ));
}

function Parts({ app }: { app: App }) {
  const { name, doc, version, digest, graphs, plugins, settings, mount, endpoints } = app;
  return (
    <>
      <p>
        <Text>{doc}</Text>
      </p>
      <p>
        <RouteLink to={threadsRoute({ app: name })}>{TEXTS.threads}</RouteLink>{" "}
        <RouteLink to={playRoute(name)}>{TEXTS.playground}</RouteLink>
      </p>
      <Panel title={TEXTS.graphs}>
        {graphs.length === 0 && <p>{TEXTS.noGraphs}</p>}
        <ul className={styles.list} aria-label={TEXTS.graphs}>
          {graphs.map((graph) => (
            <li key={graph}>
              <RouteLink to={graphRoute(name, graph)}>
                <Text>{graph}</Text>
              </RouteLink>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title={TEXTS.facts}>
        <Facts
          facts={[
            [TEXTS.version, <Text key="version">{version}</Text>],
            [TEXTS.digest, digestText(digest)],
            [
              TEXTS.plugins,
              plugins.length === 0 ? undefined : (
                <Plugins key="plugins" app={name} plugins={plugins} />
              ),
            ],
            [TEXTS.settings, textFact(settings.join(", "))],
            [TEXTS.mount, textFact(mount)],
          ]}
        />
      </Panel>
      {endpoints.length > 0 && (
        <Panel title={TEXTS.endpoints}>
          <ul className={styles.list} aria-label={TEXTS.endpoints}>
            {endpoints.map(({ method, path }) => (
              <li key={`${method} ${path}`}>
                <Text>{`${method} ${path}`}</Text>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}
