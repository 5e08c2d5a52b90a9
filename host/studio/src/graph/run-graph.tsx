// The graph of a run, whose nodes show the states of their tasks.
import { useState } from "react";
import { isMissing } from "../api/missing.ts";
import { useAppOf } from "../api/run.ts";
import { runRoute, runViewRoute, useGo, useSearchOf } from "../router/links.tsx";
import type { RunViewProps } from "../run/store.ts";
import { Reading, together } from "../shell/failure.tsx";
import { MissingGraphs } from "./missing.tsx";
import { openedIn, openedText, openNodes } from "./opened.ts";
import { itemPath } from "./page.tsx";
import { useGraphs, useVersions } from "./read.ts";
import { sceneOf } from "./scene.ts";
import type { FirstTasks } from "./states.ts";
import { NO_CASES } from "./taken.ts";
import { TEXTS } from "./texts.ts";
import { GraphView } from "./view.tsx";

/** The search parameters of the view: the path of the selected item, and those of open nodes. */
const SEARCH = { node: itemPath, open: openNodes };

/** The namespace of the graph of a run. */
const ROOT = "";

export default function RunGraph({ place, store: { timeline } }: RunViewProps) {
  const { graph, digest } = timeline.facts;
  const { node, open: opened } = useSearchOf(SEARCH);
  const go = useGo();
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openedIn(opened, node));
  const [first, setFirst] = useState<FirstTasks>(new Map());
  const app = useAppOf(place);
  const name = app.data;
  const versions = useVersions(name, graph);
  const known = versions.data?.find(({ version }) => version === digest);
  const isReady = name !== undefined && graph !== undefined && versions.data !== undefined;
  const wanted = isReady ? { app: name, graph, version: known?.version } : undefined;
  const read = useGraphs(wanted, open);
  const { data } = read;
  const of = together(app, versions, read);
  if (of.error === null && graph === undefined) return <p role="status">{TEXTS.noGraph}</p>;
  if (data === undefined || isMissing(of.error)) {
    return <Reading of={of} notFound={TEXTS.notFound} text={TEXTS.reading} />;
  }
  const note = (open: ReadonlySet<string>, node: string | undefined) => {
    const search = { view: "graph", open: openedText(open, node), node };
    go(runViewRoute(place, search), { replace: true });
  };
  const states = timeline.nodes();
  // Events have the indexes of cases, which may be those of others in another version.
  const taken = known === undefined ? NO_CASES : timeline.taken();
  const scene = sceneOf(data.root, ROOT, { graphs: data.graphs, open, states, first });
  // The picture stays if a later reading fails.
  return (
    <>
      <Reading of={{ ...of, data }} />
      {known === undefined && <p>{TEXTS.gone}</p>}
      <MissingGraphs of={[data]} />
      <GraphView
        scene={scene}
        states={states}
        taken={taken}
        opening={{
          open,
          setOpen: (next) => {
            setOpen(next);
            note(next, node);
          },
        }}
        paging={{ first, setFirst }}
        selected={node}
        onSelect={(path) => note(open, path)}
        routeOf={(seq) => runRoute(place, seq)}
        tenant={place.tenant}
      />
    </>
  );
}
