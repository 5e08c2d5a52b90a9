// The messages that the host has added to the request of a model call.
import { useState } from "react";
import { isModelCall } from "../api/call.ts";
import type { RunPlace } from "../api/log.ts";
import { Disclosure } from "../part/disclosure.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Text } from "../part/text.tsx";
import { checkpointRoute, RouteLink } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import type { GraphPlace } from "../state/read.ts";
import { useCheckpoint } from "../state/use-checkpoint.ts";
import { type History, historyOf, messagesOf } from "./history.ts";
import type { CallFacts } from "./row.ts";
import { HISTORY } from "./texts.ts";

interface HistoryPartProps {
  place: RunPlace;
  /** Namespace of the graph whose node made the call. */
  namespace: string;
  call: CallFacts;
  request: unknown;
}

/** The history of a request, if the log does not have its messages. */
export function HistoryPart({ place, namespace, call, request }: HistoryPartProps) {
  const [isOpen, setOpen] = useState(false);
  const history = isModelCall(call.function) ? historyOf(request) : undefined;
  if (history === undefined) return null;
  const { base } = call.start;
  const graph = { thread: place.thread, tenant: place.tenant, namespace };
  return (
    <Section title={HISTORY.title}>
      <p>
        <Text>{HISTORY.count(history.to - history.from, history.channel)}</Text>
      </p>
      {base !== undefined && (
        <>
          <p>
            <RouteLink to={checkpointRoute(place, base, { ns: namespace })}>
              {HISTORY.state}
            </RouteLink>
          </p>
          <Disclosure name={HISTORY.messages} isOpen={isOpen} onToggle={setOpen}>
            <Messages graph={graph} base={base} history={history} />
          </Disclosure>
        </>
      )}
    </Section>
  );
}

interface MessagesProps {
  graph: GraphPlace;
  /** The checkpoint at which the task started. */
  base: number;
  history: History;
}

function Messages({ graph, base, history }: MessagesProps) {
  const read = useCheckpoint(graph, String(base));
  const { data } = read;
  if (data === undefined) {
    return <Reading of={read} notFound={HISTORY.gone} text={HISTORY.reading} />;
  }
  const messages = messagesOf(data.state, history);
  if (messages === undefined) return <p>{HISTORY.other}</p>;
  return <JsonTree label={HISTORY.messages} value={messages} />;
}
