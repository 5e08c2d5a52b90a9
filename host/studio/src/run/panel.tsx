// What is known of a row: its facts, what a model streams, and the values of its event.
import type { ReactNode } from "react";
import type { Schemas } from "../api/client.ts";
import { callResult, type LogEvent, type RunPlace } from "../api/log.ts";
import { costText, durationText } from "../part/amount.ts";
import { Blobs } from "../part/blob/blob.tsx";
import { type Fact, Facts, textFact, timeFact } from "../part/facts.tsx";
import { Section } from "../part/section.tsx";
import { StatedFailure } from "../part/stated-failure.tsx";
import { Status } from "../part/status.tsx";
import { useWho } from "../part/who.ts";
import { Fork } from "../travel/fork-form.tsx";
import { AnswerPart } from "./answer-part.tsx";
import { Document, ReadEvent, Request } from "./event.tsx";
import { HistoryPart } from "./history-part.tsx";
import { LiveText } from "./live-text.tsx";
import type { CallFacts, Row } from "./row.ts";
import type { Sums } from "./sums.ts";
import { ANSWER, PANEL, TEXTS } from "./texts.ts";

type Principal = Schemas["Principal"];

interface RowPanelProps {
  place: RunPlace;
  row: Row;
  /** What the parts of the row took and cost, if it is known. */
  sums?: Sums | undefined;
}

/** The content of the panel of a row. */
export function RowPanel({ place, row, sums }: RowPanelProps) {
  const { call, code, detail } = row;
  return (
    <>
      <Facts facts={factsOf(row, sums)} />
      <Note row={row} />
      {row.kind === "interrupt" && <AnswerPart place={place} row={row} />}
      {code !== undefined && (
        <StatedFailure title={PANEL.failure} failure={{ code, message: detail }} />
      )}
      {call !== undefined && <Streamed key={row.id} call={call} />}
      <ReadEvent place={place} seq={row.seq}>
        {(event) => <Values place={place} event={event} call={call} />}
      </ReadEvent>
    </>
  );
}

function Note({ row: { kind, label, status } }: { row: Row }): ReactNode {
  const notes: Partial<Record<Row["status"], string>> = {
    replayed: PANEL.replayed,
    reused: PANEL.reusedNote,
    lost: PANEL.lost,
  };
  const note = kind === "change" ? PANEL.changes[label] : notes[status];
  return note === undefined ? null : <p>{note}</p>;
}

function factsOf(row: Row, sums: Sums | undefined): Fact[] {
  const { status, namespace, node, startMs, durationUs, seq, call } = row;
  return [
    [TEXTS.status, <Status key="status" name={status} />],
    [PANEL.node, textFact(node)],
    [PANEL.namespace, textFact(namespace)],
    [PANEL.started, timeFact(startMs === 0 ? undefined : startMs)],
    [PANEL.duration, durationUs === undefined ? undefined : durationText(durationUs)],
    ...(sums !== undefined && PARTS.has(row.kind) ? sumFacts(sums) : []),
    ...(call === undefined ? [] : callFacts(call)),
    [PANEL.seq, seq],
  ];
}

/** Rows whose panels have the sums over what is in them. */
const PARTS = new Set<Row["kind"]>(["step", "graph", "task", "attempt"]);

function sumFacts({ guestUs, providerUs, storeUs, input, output, cost }: Sums): Fact[] {
  const isTimed = guestUs + providerUs + storeUs > 0;
  const time = (us: number) => (isTimed ? durationText(us) : undefined);
  return [
    [TEXTS.guestTime, time(guestUs)],
    [TEXTS.providerTime, time(providerUs)],
    [TEXTS.storeTime, time(storeUs)],
    [PANEL.tokens, input + output > 0 ? TEXTS.tokensText(input, output) : undefined],
    [PANEL.cost, cost === undefined ? undefined : costText(cost)],
  ];
}

function callFacts(facts: CallFacts): Fact[] {
  const { task, scope, call, storeUs, model, provider, tries, tokens, cost, reused } = facts;
  return [
    [PANEL.task, textFact(task)],
    [PANEL.number, [...scope, call].join(".")],
    [PANEL.storeTime, storeUs > 0 ? durationText(storeUs) : undefined],
    [PANEL.model, textFact(model)],
    [PANEL.provider, textFact(provider)],
    [PANEL.tries, tries],
    [PANEL.tokens, tokens && TEXTS.tokensText(tokens.input, tokens.output)],
    [PANEL.cost, cost === undefined ? undefined : costText(cost)],
    [PANEL.reused, reused],
  ];
}

function Streamed({ call: { text, reasoning, asks } }: { call: CallFacts }) {
  return (
    <>
      {reasoning !== "" && (
        <Section title={PANEL.reasoning}>
          <LiveText label={PANEL.reasoning} text={reasoning} />
        </Section>
      )}
      {text !== "" && (
        <Section title={PANEL.streamed}>
          <LiveText label={PANEL.streamed} text={text} />
        </Section>
      )}
      {asks.length > 0 && (
        <Section title={PANEL.asks}>
          <LiveText
            label={PANEL.asks}
            text={asks.map(({ name, arguments: text }) => `${name} ${text}`).join("\n")}
          />
        </Section>
      )}
    </>
  );
}

interface ValuesProps {
  place: RunPlace;
  event: LogEvent;
  call: CallFacts | undefined;
}

/** The values of the event that says most about the row. */
function Values({ place, event, call }: ValuesProps) {
  const { thread, tenant } = place;
  return (
    <>
      <Documents place={place} event={event} call={call} />
      <Fork place={place} event={event} />
      <Blobs thread={thread} tenant={tenant} value={event} />
    </>
  );
}

function Documents({ place, event, call }: ValuesProps) {
  if (call === undefined) {
    return (
      <>
        {event.type === "answered" && <Answerer event={event} />}
        <Document title={PANEL.event} value={event} bytes={undefined} />
      </>
    );
  }
  const { namespace = "", request, result } = event;
  const { isFailed, value } = callResult(result);
  const title = isFailed ? PANEL.failure : PANEL.result;
  return (
    <>
      {request !== undefined && <Request value={request} bytes={call.requestBytes} />}
      <HistoryPart place={place} namespace={namespace} call={call} request={request} />
      {result !== undefined && <Document title={title} value={value} bytes={call.resultBytes} />}
    </>
  );
}

/** Who gave the answer of an event. */
function Answerer({ event: { principal } }: { event: LogEvent }) {
  const who = useWho((principal ?? undefined) as Principal | undefined);
  return <Facts facts={[[ANSWER.by, who]]} />;
}
