// Who answered a question of a run, and what. The answer is usually in a later run of the thread.
import { useQuery } from "@tanstack/react-query";
import { answerAmong, type GivenAnswer } from "../api/answer.ts";
import { readOutlines, type ThreadPlace } from "../api/log.ts";
import { bytesText } from "../part/amount.ts";
import { Facts, timeFact } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { useWho } from "../part/who.ts";
import { Reading } from "../shell/failure.tsx";
import type { Row } from "./row.ts";
import { ANSWER } from "./texts.ts";

/** Pages of the log that one reading requests at most. */
const MOST_PAGES = 4;

/** Interval at which a visible tab looks for an answer, in milliseconds. */
const INTERVAL_MS = 10_000;

/** What the events after a question say of its answer. */
interface Found {
  /** `undefined` if the events that were read have none. */
  answer: GivenAnswer | undefined;
  /** Sequence number of the last event that was read. */
  after: number;
  /** True if there is no later reading. */
  isFinal: boolean;
}

/** Finds the answer to an interrupt in the events after `from`. */
async function readAnswer(
  place: ThreadPlace,
  interrupt: string,
  from: number,
  signal: AbortSignal,
): Promise<Found> {
  let after = from;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const { items, next, lastSeq } = await readOutlines(place, after, { type: "answered", signal });
    const answer = answerAmong(items, interrupt);
    if (answer !== undefined) return { answer, after, isFinal: true };
    if (next === undefined) return { answer, after: lastSeq, isFinal: false };
    after = next;
  }
  return { answer: undefined, after, isFinal: true };
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
    queryFn: ({ client, queryKey, signal }) => {
      // The events before the last position have no answer.
      const from = client.getQueryData<Found>(queryKey)?.after ?? seq;
      return readAnswer(place, label, from, signal);
    },
    staleTime: ({ state }) => (state.data?.isFinal === true ? Number.POSITIVE_INFINITY : 0),
    refetchInterval: ({ state }) => (isOpen && state.data?.isFinal === false ? INTERVAL_MS : false),
  });
  const { data } = read;
  const who = useWho(data?.answer?.principal);
  if (data === undefined) return <Reading of={read} text={ANSWER.reading} />;
  if (data.answer === undefined) {
    // A fork has a question together with its answer.
    if (!isOpen) return null;
    return <p>{data.isFinal ? ANSWER.far(data.after - seq) : ANSWER.none}</p>;
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
