// A graph, or one of its nodes alone, that runs with what a user enters into a form.
import { useMemo, useState } from "react";
import type { RunPlace } from "../api/log.ts";
import type { GraphDocument } from "../graph/definition.ts";
import { useAttempt } from "../part/attempt.tsx";
import { Text } from "../part/text.tsx";
import { inputSchema } from "./input.ts";
import { type GraphOf, type Start, startRun } from "./read.ts";
import { RequestForm } from "./request-form.tsx";
import { SaveCase } from "./save-case.tsx";
import { RUN, TEXTS } from "./texts.ts";
import { Trial } from "./trial.tsx";

interface Started {
  place: RunPlace;
  input: unknown;
}

/** Starts runs, and returns the newest one. */
function useRuns(of: GraphOf) {
  const [started, setStarted] = useState<Started>();
  const starting = useAttempt(async (request: Start) => {
    setStarted({ place: await startRun(of, request), input: request.input });
  });
  return { started, starting };
}

/** A form for the input of a graph, and its newest run. */
export function GraphForm({ of, graph }: { of: GraphOf; graph: GraphDocument }) {
  const schema = useMemo(() => inputSchema(graph.definition), [graph.definition]);
  const { started, starting } = useRuns(of);
  return (
    <>
      <RequestForm
        label={TEXTS.graph(of.graph)}
        schema={schema}
        submit={RUN.start}
        busy={RUN.starting}
        isBusy={starting.isBusy}
        refusal={starting.refusal}
        onSubmit={(input) => starting.act({ kind: "graph", input })}
      />
      {started !== undefined && (
        <Trial key={started.place.run} place={started.place}>
          {({ status, thread }) => (
            <SaveCase
              place={started.place}
              run={{ graph: of.graph, input: started.input, status, thread }}
            />
          )}
        </Trial>
      )}
    </>
  );
}

interface NodeFormProps {
  of: GraphOf;
  graph: GraphDocument;
  node: string;
}

/** A form for the input of a node, and its newest run. */
export function NodeForm({ of, graph, node }: NodeFormProps) {
  const described = graph.nodes[node];
  const { started, starting } = useRuns(of);
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
        onSubmit={(input) => starting.act({ kind: "node", node, input })}
      />
      {started !== undefined && <Trial key={started.place.run} place={started.place} />}
    </>
  );
}
