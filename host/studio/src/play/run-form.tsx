// A graph, or one of its nodes alone, that runs with what a user enters into a form.
import { useMemo, useState } from "react";
import type { RunPlace } from "../api/log.ts";
import type { GraphDocument } from "../graph/definition.ts";
import { useAttempt } from "../part/attempt.tsx";
import { Text } from "../part/text.tsx";
import type { CaseRun } from "./case.ts";
import type { RunContext } from "./context.tsx";
import { inputSchema } from "./input.ts";
import { type GraphOf, type Start, startRun } from "./read.ts";
import { RequestForm } from "./request-form.tsx";
import { SaveCase } from "./save-case.tsx";
import { RUN, TEXTS } from "./texts.ts";
import { Trial } from "./trial.tsx";

interface Started {
  place: RunPlace;
  request: Start;
}

/** Starts runs with the context, and returns the newest one. */
function useRuns(of: GraphOf, context: RunContext) {
  const [started, setStarted] = useState<Started>();
  const starting = useAttempt(async (request: Start) => {
    setStarted({ place: await startRun(of, request), request });
  });
  const start = (request: Start) => {
    const given = context.read();
    if (given !== undefined) starting.act({ ...request, ...given });
  };
  return { started, starting, start };
}

interface GraphFormProps {
  of: GraphOf;
  graph: GraphDocument;
  context: RunContext;
}

/** A form for the input of a graph, and its newest run. */
export function GraphForm({ of, graph, context }: GraphFormProps) {
  const schema = useMemo(() => inputSchema(graph.definition), [graph.definition]);
  const { started, starting, start } = useRuns(of, context);
  return (
    <>
      <RequestForm
        label={TEXTS.graph(of.graph)}
        schema={schema}
        submit={RUN.start}
        busy={RUN.starting}
        isBusy={starting.isBusy}
        refusal={starting.refusal}
        onSubmit={(input) => start({ kind: "graph", input })}
      />
      {started !== undefined && (
        <Trial key={started.place.run} place={started.place}>
          {({ status, thread }) => {
            const { place, request } = started;
            const run = { graph: of.graph, ...sentIn(request), status, thread };
            return <SaveCase place={place} run={run} />;
          }}
        </Trial>
      )}
    </>
  );
}

/** Returns what a case has of a request. */
function sentIn({ input, context }: Start): Pick<CaseRun, "input" | "context"> {
  return { input, context };
}

interface NodeFormProps extends GraphFormProps {
  node: string;
}

/** A form for the input of a node, and its newest run. */
export function NodeForm({ of, graph, context, node }: NodeFormProps) {
  const described = graph.nodes[node];
  const { started, starting, start } = useRuns(of, context);
  return (
    <>
      {described !== undefined && described.doc !== "" && (
        <p>
          <Text>{described.doc}</Text>
        </p>
      )}
      <p className="w-note">{RUN.nodeNote}</p>
      <RequestForm
        label={TEXTS.node(node)}
        schema={described?.input_schema}
        submit={RUN.startNode}
        busy={RUN.starting}
        isBusy={starting.isBusy}
        refusal={starting.refusal}
        onSubmit={(input) => start({ kind: "node", node, input })}
      />
      {started !== undefined && <Trial key={started.place.run} place={started.place} />}
    </>
  );
}
