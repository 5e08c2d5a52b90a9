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
  const { firstSeq, graph, input, status } = facts;
  const isFirst = firstSeq === FIRST_SEQ;
  if (!isFirst || graph === undefined || input === undefined || status === undefined) return null;
  return (
    <Disclosure name={CASE.open} isOpen={isOpen} onToggle={setOpen}>
      <PastCase place={place} ended={{ graph, input, status, failure: facts.failure }} />
    </Disclosure>
  );
}

interface PastCaseProps {
  place: RunPlace;
  ended: { graph: string; input: number; status: string; failure: RunFacts["failure"] };
}

function PastCase({ place, ended }: PastCaseProps) {
  const { graph, input, status, failure } = ended;
  const { thread, tenant, run } = place;
  const read = useQuery({
    queryKey: ["past-case", thread, tenant, run],
    queryFn: ({ signal }) => readPast(place, input, signal),
    // The run has ended. The thread is used as the run left it, or not at all.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { data } = read;
  if (data === undefined) return <Reading of={read} notFound={CASE.gone} text={CASE.reading} />;
  const { given, left = { state: {}, interrupts: [], failure } } = data;
  return (
    <>
      <p className="w-note">{CASE.givenNote}</p>
      <CaseForm run={{ graph, ...given, status, thread: left }} />
    </>
  );
}
