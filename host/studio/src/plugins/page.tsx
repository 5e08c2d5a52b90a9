// The plugins of the host: what each exports, which permissions it lacks, and what it has used.
import { type Column, DataTable } from "@wattle/page/table";
import { Guarded, useAccess } from "../access/access.tsx";
import { bytesText, countText, msText } from "../part/amount.ts";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import { pluginRoute, RouteLink } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { DropZone } from "./drop.tsx";
import { permissionsOf } from "./grants.ts";
import styles from "./plugins.module.css";
import { exportsOf, type Plugin, usePlugins } from "./read.ts";
import { DROP, TEXTS } from "./texts.ts";

/** Height of the table before it scrolls, in pixels. */
const TABLE_PX = 720;

const counted = (key: "calls" | "failed" | "denied"): Column<Plugin> => ({
  key,
  header: TEXTS[key],
  align: "end",
  value: (plugin) => plugin.use[key],
  render: (plugin) => countText(plugin.use[key]),
});

const COLUMNS: readonly Column<Plugin>[] = [
  {
    key: "plugin",
    header: TEXTS.plugin,
    value: ({ name }) => visible(name),
    render: ({ name, app }) => (
      <RouteLink to={pluginRoute(name, app ?? undefined)}>
        <Text>{name}</Text>
      </RouteLink>
    ),
  },
  {
    key: "app",
    header: TEXTS.app,
    value: ({ app }) => visible(app ?? ""),
    render: ({ app }) => (app == null ? TEXTS.noApp : <Text>{app}</Text>),
  },
  { key: "exports", header: TEXTS.exports, value: exportsOf },
  {
    key: "state",
    header: TEXTS.state,
    value: ({ missing }) => missing.length,
    render: (plugin) => <Permissions plugin={plugin} />,
  },
  counted("calls"),
  counted("failed"),
  counted("denied"),
  {
    key: "cpu",
    header: TEXTS.cpu,
    align: "end",
    value: ({ use }) => use.cpu_ms,
    render: ({ use }) => msText(use.cpu_ms),
  },
  {
    key: "memory",
    header: TEXTS.memory,
    align: "end",
    value: ({ use }) => use.memory_peak_bytes,
    render: ({ use }) => bytesText(use.memory_peak_bytes),
  },
];

export default function PluginsPage() {
  useTitle(TEXTS.title);
  const { install } = useAccess();
  return (
    <Panels>
      <h2>{TEXTS.title}</h2>
      <Guarded need="operator" otherwise={<p>{TEXTS.forbidden}</p>}>
        {install ? <DropZone /> : <p className="w-note">{DROP.off}</p>}
        <Plugins />
      </Guarded>
    </Panels>
  );
}

function Plugins() {
  const plugins = usePlugins();
  const { data } = plugins;
  return (
    <>
      <Reading of={plugins} text={TEXTS.reading} />
      {data !== undefined && (
        <DataTable
          label={TEXTS.title}
          columns={COLUMNS}
          rows={data}
          rowKey={({ name, app }) => `${app ?? ""}/${name}`}
          maxHeight={TABLE_PX}
          empty={TEXTS.none}
        />
      )}
    </>
  );
}

/** Says whether a plugin has everything that it requests. */
function Permissions({ plugin }: { plugin: Plugin }) {
  const { missing, notes } = plugin;
  if (missing.length > 0) {
    return <span className={styles.missing}>{TEXTS.missing(missing.length)}</span>;
  }
  if (notes.length > 0) return <span className={styles.missing}>{TEXTS.noted}</span>;
  const hasRequests = permissionsOf(plugin).some(({ requested }) => requested.length > 0);
  return hasRequests ? TEXTS.granted : TEXTS.nothing;
}
