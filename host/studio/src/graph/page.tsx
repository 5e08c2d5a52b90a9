// A graph of an app, and the choice of its version and of one that it is compared with.
import { SelectField } from "@wattle/page";
import { useState } from "react";
import { isMissing } from "../api/missing.ts";
import { digestText } from "../part/digest.ts";
import { Text, visible } from "../part/text.tsx";
import {
  appRoute,
  graphRoute,
  playRoute,
  RouteLink,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { type Check, name } from "../router/search.ts";
import { Reading, together } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { Compared } from "./compared.tsx";
import styles from "./graph.module.css";
import { MissingGraphs } from "./missing.tsx";
import { useGraphs, useVersions } from "./read.ts";
import { pathsAround, sceneOf } from "./scene.ts";
import { NO_STATES } from "./states.ts";
import { TEXTS } from "./texts.ts";
import { GraphView } from "./view.tsx";

/** Characters of the longest path of an item in an address. Names of nodes are shorter than 128. */
const LONGEST_PATH = 1_024;

/** Accepts the path of an item. */
export const itemPath: Check = (text) =>
  text !== "" && text.length <= LONGEST_PATH ? text : undefined;

/** The search parameters of the view. */
const SEARCH = { version: name, against: name, node: itemPath };

export default function GraphPage() {
  const [app, graph] = [useParam("app"), useParam("graph")];
  useTitle(TEXTS.title(visible(app), visible(graph)));
  return (
    <div className={styles.page}>
      <div className={styles.head}>
        <RouteLink to={appRoute(app)}>
          <Text>{TEXTS.back(app)}</Text>
        </RouteLink>
        <h2>
          <Text>{graph}</Text>
        </h2>
        <RouteLink to={playRoute(app, { graph })}>{TEXTS.try}</RouteLink>
      </div>
      <Versions app={app} graph={graph} />
      <Body key={JSON.stringify([app, graph])} app={app} graph={graph} />
    </div>
  );
}

interface Names {
  app: string;
  graph: string;
}

/** The choice of a version, and of one that it is compared with. */
function Versions({ app, graph }: Names) {
  const { version, against } = useSearchOf(SEARCH);
  const { data = [] } = useVersions(app, graph);
  const go = useGo();
  const choose = (next: { version?: string | undefined; against?: string }) =>
    go(graphRoute(app, graph, { version, against, ...next }));
  if (data.length < 2 && version === undefined && against === undefined) return null;
  const current = data.find((it) => it.is_current)?.version;
  const options = (chosen: string | undefined) => {
    const names = new Set([...data.map((it) => it.version), ...(chosen ? [chosen] : [])]);
    return [...names].map((value) => ({
      value,
      name: value === current ? TEXTS.current(short(value)) : short(value),
    }));
  };
  return (
    <div className={styles.versions}>
      <SelectField
        label={TEXTS.version}
        value={version ?? current ?? ""}
        options={options(version)}
        onChange={(value) => choose({ version: value === current ? undefined : value })}
      />
      <SelectField
        label={TEXTS.against}
        value={against ?? ""}
        options={[{ value: "", name: TEXTS.nothing }, ...options(against)]}
        onChange={(value) => choose({ against: value })}
      />
    </div>
  );
}

function short(version: string): string {
  return visible(digestText(version));
}

function Body({ app, graph }: Names) {
  const { version, against, node } = useSearchOf(SEARCH);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(pathsAround(node ?? "")));
  const isCompared = against !== undefined;
  // A nested graph that is closed differs, too.
  const read = useGraphs({ app, graph, version }, isCompared ? "all" : open);
  const other = useGraphs(isCompared ? { app, graph, version: against } : undefined, "all");
  const go = useGo();
  const { data } = read;
  const of = together(read, other);
  const isFormer = read.isPlaceholderData || other.isPlaceholderData;
  const isUnread = isCompared && (other.data === undefined || isFormer);
  if (data === undefined || isUnread || isMissing(of.error)) {
    return <Reading of={of} notFound={TEXTS.notFound} text={TEXTS.reading} />;
  }
  const shared = {
    opening: { open, setOpen },
    selected: node,
    onSelect: (path: string | undefined) =>
      go(graphRoute(app, graph, { version, against, node: path }), { replace: true }),
  };
  const sources = { graphs: data.graphs, open, states: NO_STATES };
  // The picture stays if a later reading fails.
  return (
    <>
      <Reading of={{ ...of, data }} />
      {isCompared && other.data !== undefined ? (
        <Compared before={other.data} after={data} {...shared} />
      ) : (
        <>
          <MissingGraphs of={[data]} />
          <GraphView
            scene={sceneOf(data.root, undefined, sources)}
            states={NO_STATES}
            {...shared}
          />
        </>
      )}
    </>
  );
}
