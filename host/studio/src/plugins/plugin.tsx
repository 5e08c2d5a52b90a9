// A plugin in an app: what it exports and imports, its permissions, and what it has used.
import { Panel } from "@wattle/page";
import type { ReactNode } from "react";
import { Guarded, useAccess } from "../access/access.tsx";
import { bytesText, countText, msText } from "../part/amount.ts";
import { digestText } from "../part/digest.ts";
import { Facts } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Panels } from "../part/panels.tsx";
import { Section } from "../part/section.tsx";
import { Text, visible } from "../part/text.tsx";
import {
  appRoute,
  pluginPlayRoute,
  pluginRoute,
  RouteLink,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name as anyName } from "../router/search.ts";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { Denials } from "./denials.tsx";
import { Permissions } from "./permissions.tsx";
import styles from "./plugins.module.css";
import { type Plugin, usePlugin } from "./read.ts";
import { RemovePlugin } from "./remove.tsx";
import { PAGE, TEXTS } from "./texts.ts";

export default function PluginPage() {
  const plugin = useParam("plugin");
  useTitle(TEXTS.tab(visible(plugin)));
  return (
    <Panels>
      <h2>
        <Text>{plugin}</Text>
      </h2>
      <Guarded need="operator" otherwise={<p>{TEXTS.forbidden}</p>}>
        <Entries plugin={plugin} />
      </Guarded>
    </Panels>
  );
}

/** The entry of one app, and links to those of other apps. */
function Entries({ plugin }: { plugin: string }) {
  const { app } = useSearchOf({ app: anyName });
  const read = usePlugin(plugin);
  const { data } = read;
  const reading = <Reading of={read} notFound={TEXTS.notFound} text={TEXTS.reading} />;
  if (data === undefined) return reading;
  const entry = app === undefined ? data[0] : data.find((it) => it.app === app);
  return (
    <>
      {reading}
      {(data.length > 1 || entry === undefined) && <Apps entries={data} current={entry} />}
      {entry === undefined ? <p>{TEXTS.notInApp(visible(app ?? ""))}</p> : <Entry plugin={entry} />}
    </>
  );
}

function Apps({ entries, current }: { entries: readonly Plugin[]; current: Plugin | undefined }) {
  return (
    <nav aria-label={PAGE.apps}>
      <ul className={styles.apps}>
        {entries.map((entry) => {
          const app = entry.app ?? undefined;
          return (
            <li key={app ?? ""}>
              <RouteLink
                to={pluginRoute(entry.name, app)}
                aria-current={entry === current ? "true" : undefined}
              >
                <Text>{app ?? TEXTS.noApp}</Text>
              </RouteLink>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function Entry({ plugin }: { plugin: Plugin }) {
  const access = useAccess();
  const { app, digest, size_bytes, contract, manifest } = plugin;
  return (
    <>
      <Panel title={PAGE.facts}>
        <Facts
          facts={[
            [TEXTS.app, app == null ? TEXTS.noApp : <AppLink key="app" app={app} />],
            [PAGE.digest, <code key="digest">{digestText(digest)}</code>],
            [PAGE.size, bytesText(size_bytes)],
            [PAGE.contract, contract === "" ? PAGE.typed : <Text key="c">{contract}</Text>],
          ]}
        />
      </Panel>
      {access.install && app == null && <RemovePlugin plugin={plugin.name} />}
      <Use plugin={plugin} />
      <Panel title={PAGE.permissions}>
        <Permissions plugin={plugin} />
      </Panel>
      <Functions plugin={plugin} />
      <Names title={PAGE.interfaces} names={plugin.exports} />
      <Names title={PAGE.imports} names={plugin.imports} />
      {manifest != null && (
        <Panel title={PAGE.manifest}>
          <pre className={styles.manifest}>
            <Text>{manifest}</Text>
          </pre>
        </Panel>
      )}
    </>
  );
}

function AppLink({ app }: { app: string }) {
  return (
    <RouteLink to={appRoute(app)}>
      <Text>{app}</Text>
    </RouteLink>
  );
}

function Use({ plugin: { use } }: { plugin: Plugin }) {
  return (
    <Panel title={PAGE.use}>
      <Facts
        facts={[
          [TEXTS.calls, countText(use.calls)],
          [TEXTS.failed, countText(use.failed)],
          [TEXTS.denied, countText(use.denied)],
          [TEXTS.cpu, msText(use.cpu_ms)],
          [TEXTS.memory, bytesText(use.memory_peak_bytes)],
        ]}
      />
      <p className="w-note">{PAGE.useNote}</p>
      <Denials denials={use.denials} />
    </Panel>
  );
}

/** What the plugin exports: nodes and tools with their schemas, reducers, endpoints. */
function Functions({ plugin }: { plugin: Plugin }) {
  const { nodes, tool_schemas, reducers, routes, refused = [] } = plugin;
  return (
    <>
      {nodes.length > 0 && (
        <Panel title={PAGE.nodes}>
          <ul className={styles.list} aria-label={PAGE.nodes}>
            {nodes.map(({ name, doc, input_schema, output_schema, config_schema }) => (
              <Described key={name} name={name} doc={doc}>
                <p>
                  <RouteLink to={functionRoute(plugin, { node: name })}>{PAGE.callNode}</RouteLink>
                </p>
                <Schema title={PAGE.input} schema={input_schema} />
                <Schema title={PAGE.output} schema={output_schema} />
                {config_schema != null && <Schema title={PAGE.config} schema={config_schema} />}
              </Described>
            ))}
          </ul>
        </Panel>
      )}
      {tool_schemas.length > 0 && (
        <Panel title={PAGE.tools}>
          <ul className={styles.list} aria-label={PAGE.tools}>
            {tool_schemas.map(({ name, description, input_schema }) => (
              <Described key={name} name={name} doc={description}>
                <p>
                  <RouteLink to={functionRoute(plugin, { tool: name })}>{PAGE.try}</RouteLink>
                </p>
                <Schema title={PAGE.arguments} schema={input_schema} />
              </Described>
            ))}
          </ul>
        </Panel>
      )}
      {refused.length > 0 && (
        <Panel title={PAGE.refused}>
          <ul className={styles.list} aria-label={PAGE.refused}>
            {refused.map(({ function: name, reason }) => (
              <li key={name}>
                <span className={styles.name}>
                  <Text>{name}</Text>
                </span>{" "}
                <Text>{reason}</Text>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Names title={PAGE.reducers} names={reducers} />
      <Names title={PAGE.endpoints} names={routes} />
    </>
  );
}

/** Returns the route of a node or a tool in the playground of the plugin. */
function functionRoute({ app, name }: Plugin, of: { node: string } | { tool: string }): string {
  return pluginPlayRoute(name, { app: app ?? undefined, ...of });
}

/** A function with its description. Its schemas are shown when a user opens it. */
function Described({ name, doc, children }: { name: string; doc: string; children: ReactNode }) {
  return (
    <li className={styles.item}>
      <details>
        <summary>
          <strong className={styles.name}>
            <Text>{name}</Text>
          </strong>{" "}
          <Text>{doc}</Text>
        </summary>
        <div className={styles.schemas}>{children}</div>
      </details>
    </li>
  );
}

function Schema({ title, schema }: { title: string; schema: unknown }) {
  return (
    <Section title={title}>
      <JsonTree label={title} value={schema} />
    </Section>
  );
}

function Names({ title, names }: { title: string; names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <Panel title={title}>
      <ul className={styles.list} aria-label={title}>
        {names.map((name) => (
          <li key={name} className={styles.name}>
            <Text>{name}</Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
