// A graph of an app: its picture, and the differences between two of its versions.
import { SelectField } from "@wattle/page";
import { useMemo, useState } from "react";
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
import { type Comparison, compare } from "./compare.ts";
import type { GraphDocument } from "./definition.ts";
import styles from "./graph.module.css";
import { useGraph, useGraphs, useVersions } from "./read.ts";
import { pathsAround, type Scene, sceneOf } from "./scene.ts";
import { LINES, labelOf, TEXTS } from "./texts.ts";
import { GraphView } from "./view.tsx";

/** Characters of the longest path of an item in an address. Names of nodes are shorter than 128. */
const LONGEST_PATH = 1_024;

/** Accepts the path of an item. */
export const itemPath: Check = (text) =>
  text !== "" && text.length <= LONGEST_PATH ? text : undefined;

/** The search parameters of the view. */
const SEARCH = { version: name, against: name, node: itemPath };

const NO_STATES = new Map();

const NOTHING_INSIDE = new Map();

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
  const read = useGraphs({ app, graph, version }, open);
  const other = useGraph(against === undefined ? undefined : { app, graph, version: against });
  const go = useGo();
  const { data } = read;
  const of = together(read, other);
  const isUnread = against !== undefined && other.data === undefined;
  if (data === undefined || isUnread || isMissing(of.error)) {
    return <Reading of={of} notFound={TEXTS.notFound} text={TEXTS.reading} />;
  }
  const shared = {
    selected: node,
    onSelect: (path: string | undefined) =>
      go(graphRoute(app, graph, { version, against, node: path }), { replace: true }),
  };
  const sources = { graphs: data.graphs, open, states: NO_STATES };
  // The picture stays if a later reading fails.
  return (
    <>
      <Reading of={{ ...of, data }} />
      {other.data === undefined ? (
        <GraphView
          scene={sceneOf(data.root, undefined, sources)}
          states={NO_STATES}
          opening={{ open, setOpen }}
          {...shared}
        />
      ) : (
        <Compared before={other.data} after={data.root} {...shared} />
      )}
    </>
  );
}

interface ComparedProps {
  before: GraphDocument;
  after: GraphDocument;
  selected: string | undefined;
  onSelect: (path: string | undefined) => void;
}

function Compared({ before, after, ...shared }: ComparedProps) {
  const comparison = useMemo(() => compare(before, after), [before, after]);
  const scene: Scene = {
    key: "",
    path: "",
    shape: comparison.shape,
    graph: after,
    place: undefined,
    inside: NOTHING_INSIDE,
  };
  return (
    <>
      <Differences comparison={comparison} />
      <GraphView scene={scene} states={NO_STATES} comparison={comparison} {...shared} />
    </>
  );
}

function Differences({ comparison: { shape, items, lines } }: { comparison: Comparison }) {
  if (items.length + lines.length === 0) return <p>{TEXTS.same}</p>;
  const names = new Map(shape.items.map((item) => [item.id, labelOf(item)]));
  const named = (id: string) => names.get(id) ?? id;
  return (
    <details className={styles.differences} open>
      <summary>{TEXTS.differences}</summary>
      <ul className={styles.list} aria-label={TEXTS.differences}>
        {items.map(([item, mark]) => (
          <li key={item.id} data-mark={mark}>
            {TEXTS.marks[mark]}: {item.kind} <Text>{item.name}</Text>
          </li>
        ))}
        {lines.map(([line, mark]) => (
          <li key={JSON.stringify(line)} data-mark={mark}>
            {TEXTS.marks[mark]}: {LINES[line.kind]}{" "}
            <Text>{TEXTS.line(named(line.from), named(line.to))}</Text>{" "}
            {line.label !== "" && <Text>{line.label}</Text>}
          </li>
        ))}
      </ul>
    </details>
  );
}
