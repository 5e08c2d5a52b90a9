// Who answered a question of a run, and what. The answer is usually in a later run of the thread.
import { useQuery } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { answerAmong, type GivenAnswer } from "../api/answer.ts";
import { api, ok } from "../api/client.ts";
import type { EventOutline, ThreadPlace } from "../api/log.ts";
import { bytesText } from "../part/amount.ts";
import { Facts, timeFact } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { useWho } from "../part/who.ts";
import { Reading } from "../shell/failure.tsx";
import type { Row } from "./row.ts";
import { ANSWER } from "./texts.ts";

/** Pages of the log after a question that are read at most, and the events in each. */
const MOST_PAGES = 4;
const PAGE_EVENTS = 500;

/** Interval at which a visible tab looks for an answer, in milliseconds. */
const INTERVAL_MS = 10_000;

/** What the events after a question say of its answer. */
interface Found {
  /** `undefined` if the events that were read have none. */
  answer: GivenAnswer | undefined;
  /** True if a later reading finds the same. */
  isFinal: boolean;
}

/** Finds the answer to an interrupt in the events after its question. */
async function readAnswer(
  { thread, tenant }: ThreadPlace,
  { label: interrupt, seq }: Row,
  signal: AbortSignal,
): Promise<Found> {
  const headers = tenantHeaders(tenant);
  let after = seq;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = { after, types: "answered", outline: true, limit: PAGE_EVENTS };
    const params = { path: { thread }, query };
    const page = await ok(api.GET("/api/v1/threads/{thread}/log", { params, headers, signal }));
    // The request asked for outlines.
    const answer = answerAmong(page.items as EventOutline[], interrupt);
    if (answer !== undefined) return { answer, isFinal: true };
    if (page.next_after == null) return { answer, isFinal: false };
    after = page.next_after;
  }
  return { answer: undefined, isFinal: true };
}

interface AnswerPartProps {
  place: ThreadPlace;
  /** The row of the question. */
  row: Row;
}

/** The answer to a question. */
export function AnswerPart({ place, row }: AnswerPartProps) {
  const { label, seq, status } = row;
  const isOpen = status === "asked";
  const read = useQuery({
    // The status changes if the answer is in the log of the same run.
    queryKey: ["answer", place.thread, place.tenant, label, seq, status],
    queryFn: ({ signal }) => readAnswer(place, row, signal),
    staleTime: ({ state }) => (state.data?.isFinal === true ? Number.POSITIVE_INFINITY : 0),
    refetchInterval: ({ state }) => (isOpen && state.data?.isFinal === false ? INTERVAL_MS : false),
  });
  const { data } = read;
  const who = useWho(data?.answer?.principal);
  if (data === undefined) return <Reading of={read} text={ANSWER.reading} />;
  if (data.answer === undefined) {
    // A fork has a question together with its answer.
    if (!isOpen) return null;
    return <p>{data.isFinal ? ANSWER.far(MOST_PAGES * PAGE_EVENTS) : ANSWER.none}</p>;
  }
  const { at_ms, answer } = data.answer;
  return (
    <Section title={ANSWER.title}>
      <Facts
        facts={[
          [ANSWER.by, who],
          [ANSWER.at, timeFact(at_ms)],
        ]}
      />
      {answer.value === undefined ? (
        <p>{ANSWER.tooLarge(bytesText(answer.bytes))}</p>
      ) : (
        <JsonTree label={ANSWER.title} value={answer.value} />
      )}
    </Section>
  );
}
