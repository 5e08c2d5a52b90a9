// Saves a run of the past as a case of a data set.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { RunPlace } from "../api/log.ts";
import { Disclosure } from "../part/disclosure.tsx";
import type { RunFacts } from "../run/facts.ts";
import { Reading } from "../shell/failure.tsx";
import { FIRST_SEQ, readPast } from "./read.ts";
import { CaseForm } from "./save-case.tsx";
import { CASE } from "./texts.ts";

interface SaveRunProps {
  place: RunPlace;
  facts: RunFacts;
}

/** A form for the case of a run that has ended. A case makes no runs before its own. */
export function SaveRun({ place, facts }: SaveRunProps) {
  const [isOpen, setOpen] = useState(false);
  const { firstSeq, graph, input, status, checkpoint, failure } = facts;
  const isFirst = firstSeq === FIRST_SEQ;
  if (!isFirst || graph === undefined || input === undefined || status === undefined) return null;
  return (
    <Disclosure name={CASE.open} isOpen={isOpen} onToggle={setOpen}>
      <PastCase place={place} ended={{ graph, input, status, checkpoint, failure }} />
    </Disclosure>
  );
}

/** The facts of a run that has ended. */
interface Ended extends Pick<RunFacts, "checkpoint" | "failure"> {
  graph: string;
  input: number;
  status: string;
}

interface PastCaseProps {
  place: RunPlace;
  ended: Ended;
}

function PastCase({ place, ended }: PastCaseProps) {
  const { graph, input, status, checkpoint, failure } = ended;
  // A case expects the state of a completed run only.
  const end = status === "completed" ? checkpoint : undefined;
  const { thread, tenant, run } = place;
  const read = useQuery({
    queryKey: ["past-case", thread, tenant, run],
    queryFn: ({ signal }) => readPast(place, { input, end }, signal),
    // The run has ended. The interrupts of the thread are those of the run, or are not used.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { data } = read;
  if (data === undefined) return <Reading of={read} notFound={CASE.gone} text={CASE.reading} />;
  const { given, state, interrupts } = data;
  return (
    <>
      <p className="w-note">{CASE.givenNote}</p>
      <CaseForm run={{ graph, ...given, status, thread: { state, interrupts, failure } }} />
    </>
  );
}
