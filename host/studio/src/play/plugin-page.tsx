// The playground of a standalone plugin: its tools, one at a time, outside of any app.
import { SelectField } from "@wattle/page";
import { Guarded } from "../access/access.tsx";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import { type Plugin, usePlugin } from "../plugins/read.ts";
import {
  playRoute,
  pluginPlayRoute,
  pluginRoute,
  RouteLink,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name } from "../router/search.ts";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import styles from "./play.module.css";
import { callPluginTool } from "./read.ts";
import { Tenant } from "./tenant.tsx";
import { PLUGIN, TEXTS } from "./texts.ts";
import { ToolForm } from "./tool-form.tsx";

/** The search parameters of the view. */
const SEARCH = { tool: name, tenant: name };

export default function PluginPlayPage() {
  const plugin = useParam("plugin");
  useTitle(TEXTS.title(visible(plugin)));
  return (
    <Panels>
      <div className={styles.top}>
        <RouteLink to={pluginRoute(plugin)}>
          <Text>{PLUGIN.back(plugin)}</Text>
        </RouteLink>
        <h2>{TEXTS.heading}</h2>
      </div>
      <Guarded need="operator" otherwise={<p>{PLUGIN.forbidden}</p>}>
        <Entry plugin={plugin} />
      </Guarded>
    </Panels>
  );
}

/** The tools of the plugin, if it is one that no app uses. */
function Entry({ plugin }: { plugin: string }) {
  const read = usePlugin(plugin);
  const { data } = read;
  if (data === undefined) return <Reading of={read} notFound={PLUGIN.notFound} />;
  const standalone = data.find(({ app }) => app == null);
  if (standalone === undefined) return <InApps entries={data} />;
  const { tool_schemas } = standalone;
  return tool_schemas.length === 0 ? (
    <p>{PLUGIN.nothing}</p>
  ) : (
    <Chosen plugin={plugin} tools={tool_schemas} />
  );
}

/** Links to the playgrounds of the apps that use the plugin. */
function InApps({ entries }: { entries: readonly Plugin[] }) {
  const apps = entries.flatMap(({ app }) => (app == null ? [] : [app]));
  return (
    <>
      <p>{PLUGIN.inApps}</p>
      <ul className={styles.apps} aria-label={PLUGIN.apps}>
        {apps.map((app) => (
          <li key={app}>
            <RouteLink to={playRoute(app)}>
              <Text>{TEXTS.title(app)}</Text>
            </RouteLink>
          </li>
        ))}
      </ul>
    </>
  );
}

interface ChosenProps {
  plugin: string;
  tools: Plugin["tool_schemas"];
}

function Chosen({ plugin, tools }: ChosenProps) {
  const go = useGo();
  const search = useSearchOf(SEARCH);
  const { tenant } = search;
  // Without a choice in the address, it is the first tool.
  const wanted = search.tool ?? tools[0]?.name ?? "";
  const tool = tools.find((it) => it.name === wanted);
  const known = tools.map((it) => toolOption(it.name));
  const reference = `${plugin}/${wanted}`;
  return (
    <>
      <Tenant
        value={tenant}
        onValue={(value) =>
          go(pluginPlayRoute(plugin, { ...search, tenant: value }), { replace: true })
        }
      />
      <div className={styles.choice}>
        <SelectField
          label={TEXTS.subject}
          value={wanted}
          options={tool === undefined ? [toolOption(wanted), ...known] : known}
          onChange={(value) => go(pluginPlayRoute(plugin, { tool: value, tenant }))}
        />
      </div>
      {tool === undefined ? (
        <p>{PLUGIN.noTool}</p>
      ) : (
        <ToolForm
          key={`${reference} ${tenant}`}
          tool={{ ...tool, tool: reference }}
          onCall={(input, signal) => callPluginTool(plugin, wanted, { input, tenant }, signal)}
        />
      )}
    </>
  );
}

function toolOption(tool: string) {
  return { value: tool, name: visible(TEXTS.tool(tool)) };
}
