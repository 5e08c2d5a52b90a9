// The playground of an app: its graphs, the nodes of these, and its tools, one at a time.
import { Segments, SelectField } from "@wattle/page";
import { useState } from "react";
import { Guarded } from "../access/access.tsx";
import { useApps } from "../api/apps.ts";
import { isMissing } from "../api/missing.ts";
import type { GraphDocument } from "../graph/definition.ts";
import { useGraph } from "../graph/read.ts";
import { Panels } from "../part/panels.tsx";
import { Text, visible } from "../part/text.tsx";
import {
  appRoute,
  type PlaySearch,
  playRoute,
  RouteLink,
  useGo,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name } from "../router/search.ts";
import { Reading, together } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { Chat } from "./chat.tsx";
import { ContextFields, type RunContext, useRunContext } from "./context.tsx";
import { messageChannel } from "./input.ts";
import styles from "./play.module.css";
import { callTool, type GraphOf, type Tool, useTools } from "./read.ts";
import { GraphForm, NodeForm } from "./run-form.tsx";
import { type Subject, SubjectField } from "./subject-field.tsx";
import { Tenant } from "./tenant.tsx";
import { TEXTS } from "./texts.ts";
import { ToolForm } from "./tool-form.tsx";

/** The search parameters of the view. */
const SEARCH = { graph: name, node: name, tool: name, tenant: name };

export default function PlayPage() {
  const app = useParam("app");
  const search = useSearchOf(SEARCH);
  const go = useGo();
  useTitle(TEXTS.title(visible(app)));
  return (
    <Panels>
      <div className={styles.top}>
        <RouteLink to={appRoute(app)}>
          <Text>{TEXTS.back(app)}</Text>
        </RouteLink>
        <h2>{TEXTS.heading}</h2>
      </div>
      <Guarded need="write" otherwise={<p>{TEXTS.mayNot}</p>}>
        <Tenant
          value={search.tenant}
          onValue={(tenant) => go(playRoute(app, { ...search, tenant }), { replace: true })}
        />
        <Subjects app={app} search={search} />
      </Guarded>
    </Panels>
  );
}

interface PartProps {
  app: string;
  search: PlaySearch;
}

/** The choice of what is tried, and the chosen part of the app. */
function Subjects({ app, search }: PartProps) {
  const apps = useApps();
  const tools = useTools(app);
  const graphs = apps.data?.find((it) => it.name === app)?.graphs;
  const of = together(apps, tools);
  // The tools of an app that is not in the list any more may have been read before.
  const isGone = apps.data !== undefined && graphs === undefined;
  if (isGone && of.error === null) return <p>{TEXTS.notFound}</p>;
  if (graphs === undefined || tools.data === undefined || isMissing(of.error)) {
    return <Reading of={of} notFound={TEXTS.notFound} />;
  }
  // What was entered and a conversation stay if a later reading fails.
  return (
    <>
      <Reading of={{ ...of, data: graphs }} />
      <Chosen app={app} search={search} graphs={graphs} tools={tools.data} />
    </>
  );
}

interface ChosenProps extends PartProps {
  graphs: readonly string[];
  tools: readonly Tool[];
}

function Chosen({ app, search, graphs, tools }: ChosenProps) {
  const go = useGo();
  const { graph, node, tenant } = search;
  // Without a choice in the address, it is the first graph, or else the first tool.
  const isTool = search.tool !== undefined || (graph === undefined && graphs.length === 0);
  const wanted = search.tool ?? tools[0]?.tool ?? "";
  const tool = tools.find((it) => it.tool === wanted);
  const of = { app, graph: graph ?? graphs[0] ?? "", tenant };
  const known: Subject[] = [
    ...graphs.map((it) => ({ kind: "graph" as const, name: it })),
    ...tools.map((it) => ({ kind: "tool" as const, name: it.tool })),
  ];
  if (known.length === 0) return <p>{TEXTS.nothing}</p>;
  return (
    <>
      <SubjectField
        chosen={isTool ? { kind: "tool", name: wanted } : { kind: "graph", name: of.graph }}
        known={known}
        onChoose={(it) => go(playRoute(app, { [it.kind]: it.name, tenant }))}
      />
      {isTool && tool === undefined && <p>{TEXTS.noTool}</p>}
      {isTool && tool !== undefined && (
        <ToolForm
          key={`${tool.tool} ${tenant}`}
          tool={tool}
          onCall={(request, signal) => callTool(app, tool.tool, { ...request, tenant }, signal)}
        />
      )}
      {!isTool && <GraphPart key={`${of.graph} ${tenant}`} of={of} node={node} />}
    </>
  );
}

/** A graph: as a whole, or one of its nodes. */
function GraphPart({ of, node }: { of: GraphOf; node: string | undefined }) {
  const read = useGraph({ app: of.app, graph: of.graph, version: undefined });
  const { data, error } = read;
  const go = useGo();
  if (data === undefined || isMissing(error)) {
    return <Reading of={read} notFound={TEXTS.noGraph} />;
  }
  const names = Object.keys(data.nodes);
  const isKnown = node !== undefined && names.includes(node);
  const choose = (value: string) =>
    go(playRoute(of.app, { graph: of.graph, node: value, tenant: of.tenant }));
  return (
    <>
      <Reading of={read} />
      <div className={styles.choice}>
        <SelectField
          label={TEXTS.part}
          value={isKnown ? node : ""}
          options={[
            { value: "", name: TEXTS.whole },
            ...names.map((it) => ({ value: it, name: visible(TEXTS.node(it)) })),
          ]}
          onChange={choose}
        />
      </div>
      <Runs of={of} graph={data} node={isKnown ? node : undefined} />
    </>
  );
}

interface RunsProps {
  of: GraphOf;
  graph: GraphDocument;
  /** The node that runs alone; `undefined` for the whole graph. */
  node: string | undefined;
}

/** The context of the runs, and what starts them. */
function Runs({ of, graph, node }: RunsProps) {
  const context = useRunContext(graph.definition);
  return (
    <>
      <ContextFields context={context} />
      {node === undefined ? (
        <WholeGraph of={of} graph={graph} context={context} />
      ) : (
        <NodeForm key={node} of={of} graph={graph} context={context} node={node} />
      )}
    </>
  );
}

interface WholeGraphProps extends Omit<RunsProps, "node"> {
  context: RunContext;
}

/** A graph as a whole: a conversation, or a form. */
function WholeGraph({ of, graph, context }: WholeGraphProps) {
  const channel = messageChannel(graph.definition);
  const [mode, setMode] = useState<"chat" | "form">(channel === undefined ? "form" : "chat");
  return (
    <>
      {channel !== undefined && (
        <Segments
          label={TEXTS.mode}
          options={[
            { value: "chat", name: TEXTS.asChat },
            { value: "form", name: TEXTS.asForm },
          ]}
          value={mode}
          onChange={setMode}
        />
      )}
      {mode === "chat" && channel !== undefined ? (
        <Chat of={of} channel={channel} context={context} />
      ) : (
        <GraphForm of={of} graph={graph} context={context} />
      )}
    </>
  );
}
