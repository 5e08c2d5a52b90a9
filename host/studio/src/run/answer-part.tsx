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
import { whoOf } from "../part/who.ts";
import { Reading } from "../shell/failure.tsx";
import type { Row } from "./row.ts";
import { ANSWER } from "./texts.ts";

/** Pages of the log after a question that are read at most, and the events in each. */
const MOST_PAGES = 4;
const PAGE_EVENTS = 500;

/** Interval at which a visible tab looks for an answer, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Finds the answer to an interrupt in the events after its question; `null` if it is not there. */
async function readAnswer(
  { thread, tenant }: ThreadPlace,
  { label: interrupt, seq }: Row,
  signal: AbortSignal,
): Promise<GivenAnswer | null> {
  const headers = tenantHeaders(tenant);
  let after = seq;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = { after, types: "answered", outline: true, limit: PAGE_EVENTS };
    const params = { path: { thread }, query };
    const page = await ok(api.GET("/api/v1/threads/{thread}/log", { params, headers, signal }));
    // The request asked for outlines.
    const found = answerAmong(page.items as EventOutline[], interrupt);
    if (found !== undefined) return found;
    if (page.next_after == null) return null;
    after = page.next_after;
  }
  return null;
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
    queryKey: ["answer", place.thread, place.tenant, label, seq],
    queryFn: ({ signal }) => readAnswer(place, row, signal),
    refetchInterval: ({ state }) => (isOpen && state.data === null ? INTERVAL_MS : false),
  });
  const { data } = read;
  if (data === undefined) return <Reading of={read} text={ANSWER.reading} />;
  // A fork has a question together with its answer.
  if (data === null) return isOpen ? <p>{ANSWER.none(MOST_PAGES * PAGE_EVENTS)}</p> : null;
  const { at_ms, principal, answer } = data;
  return (
    <Section title={ANSWER.title}>
      <Facts
        facts={[
          [ANSWER.by, whoOf(principal)],
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
