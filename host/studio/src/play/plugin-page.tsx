// The playground of a plugin: its nodes and tools, one at a time. A standalone plugin is called
// outside of any app.
import { Guarded } from "../access/access.tsx";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import { type Plugin, usePlugin } from "../plugins/read.ts";
import {
  pluginPlayRoute,
  pluginRoute,
  RouteLink,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name as anyName } from "../router/search.ts";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { NodeCallForm } from "./node-form.tsx";
import styles from "./play.module.css";
import { callNode, callPluginTool, callTool } from "./read.ts";
import { type Subject, SubjectField } from "./subject-field.tsx";
import { Tenant } from "./tenant.tsx";
import { PLUGIN, TEXTS } from "./texts.ts";
import { ToolForm } from "./tool-form.tsx";

/** The search parameters of the view. */
const SEARCH = { app: anyName, node: anyName, tool: anyName, tenant: anyName };

export default function PluginPlayPage() {
  const plugin = useParam("plugin");
  const { app } = useSearchOf(SEARCH);
  useTitle(TEXTS.title(visible(plugin)));
  return (
    <Panels>
      <div className={styles.top}>
        <RouteLink to={pluginRoute(plugin, app)}>
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

/** The functions of the plugin in the app of the address, or of a standalone plugin. */
function Entry({ plugin }: { plugin: string }) {
  const { app } = useSearchOf(SEARCH);
  const read = usePlugin(plugin);
  const { data } = read;
  if (data === undefined) return <Reading of={read} notFound={PLUGIN.notFound} />;
  const entry = data.find((it) => (it.app ?? undefined) === app);
  if (entry === undefined) {
    return app === undefined ? <InApps plugin={plugin} entries={data} /> : <p>{PLUGIN.notInApp}</p>;
  }
  const isEmpty = entry.nodes.length === 0 && entry.tool_schemas.length === 0;
  return isEmpty ? <p>{PLUGIN.nothing}</p> : <Chosen entry={entry} />;
}

/** The choice of the app in which the functions of the plugin are called. */
function InApps({ plugin, entries }: { plugin: string; entries: readonly Plugin[] }) {
  const apps = entries.flatMap(({ app }) => (app == null ? [] : [app]));
  return (
    <>
      <p>{PLUGIN.inApps}</p>
      <ul className={styles.apps} aria-label={PLUGIN.apps}>
        {apps.map((app) => (
          <li key={app}>
            <RouteLink to={pluginPlayRoute(plugin, { app })}>
              <Text>{app}</Text>
            </RouteLink>
          </li>
        ))}
      </ul>
    </>
  );
}

interface ChosenProps {
  entry: Plugin;
}

function Chosen({ entry }: ChosenProps) {
  const go = useGo();
  const search = useSearchOf(SEARCH);
  const { app, tenant } = search;
  const { name: plugin, nodes, tool_schemas: tools } = entry;
  // Without a choice in the address, it is the first tool, or else the first node.
  const isNode = search.node !== undefined || (search.tool === undefined && tools.length === 0);
  const wanted = (isNode ? (search.node ?? nodes[0]?.name) : (search.tool ?? tools[0]?.name)) ?? "";
  const chosen: Subject = { kind: isNode ? "node" : "tool", name: wanted };
  const known: Subject[] = [
    ...tools.map(({ name }) => ({ kind: "tool" as const, name })),
    ...nodes.map(({ name }) => ({ kind: "node" as const, name })),
  ];
  const key = JSON.stringify([app, chosen, tenant]);
  return (
    <>
      <Tenant
        value={tenant}
        onValue={(value) =>
          go(pluginPlayRoute(plugin, { ...search, tenant: value }), { replace: true })
        }
      />
      <SubjectField
        chosen={chosen}
        known={known}
        onChoose={(it) => go(pluginPlayRoute(plugin, { app, [it.kind]: it.name, tenant }))}
      />
      {isNode ? (
        <OneNode key={key} entry={entry} name={wanted} tenant={tenant} />
      ) : (
        <OneTool key={key} entry={entry} name={wanted} tenant={tenant} />
      )}
    </>
  );
}

interface OneProps extends ChosenProps {
  /** Name of the node or the tool. */
  name: string;
  tenant: string | undefined;
}

function OneNode({ entry, name, tenant }: OneProps) {
  const { name: plugin } = entry;
  const app = entry.app ?? undefined;
  const node = entry.nodes.find((it) => it.name === name);
  if (node === undefined) return <p>{PLUGIN.noNode}</p>;
  return (
    <NodeCallForm
      node={node}
      reference={`${plugin}/${name}`}
      onCall={(request, signal) =>
        callNode({ app, plugin, node: name }, { ...request, tenant }, signal)
      }
    />
  );
}

function OneTool({ entry, name, tenant }: OneProps) {
  const { app, name: plugin } = entry;
  const reference = `${plugin}/${name}`;
  const tool = entry.tool_schemas.find((it) => it.name === name);
  if (tool === undefined) return <p>{PLUGIN.noTool}</p>;
  return (
    <ToolForm
      tool={{ ...tool, tool: reference }}
      onCall={(request, signal) =>
        app == null
          ? callPluginTool(plugin, name, { ...request, tenant }, signal)
          : callTool(app, reference, { ...request, tenant }, signal)
      }
    />
  );
}
