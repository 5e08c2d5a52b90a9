// What has become of an interrupt that is not pending any more: who answered it, and how.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button } from "@wattle/page";
import type { GivenAnswer } from "../api/answer.ts";
import { countText } from "../part/amount.ts";
import { Facts } from "../part/facts.tsx";
import { Time } from "../part/time.tsx";
import { useWho } from "../part/who.ts";
import { Reading } from "../shell/failure.tsx";
import styles from "./inbox.module.css";
import { Document } from "./payload.tsx";
import { type Outcome, type Place, readOutcome } from "./read.ts";
import { TEXTS } from "./texts.ts";

interface OutcomeProps {
  place: Place;
  /** The question, if it was shown before. */
  title: string | undefined;
  /** Goes to the next question; absent if there is none. */
  onNext: (() => void) | undefined;
}

/** Says who answered. */
export function OutcomeView({ place, title, onNext }: OutcomeProps) {
  const read = useQuery({
    queryKey: ["outcome", place],
    queryFn: () => readOutcome(place),
  });
  const { data } = read;
  return (
    <section className={styles.outcome} aria-label={TEXTS.question}>
      {title !== undefined && <h3 className={styles.heading}>{title}</h3>}
      <Reading of={read} text={TEXTS.checking} />
      {data !== undefined && <Told outcome={data} />}
      {onNext !== undefined && (
        <div>
          <Button onClick={onNext}>{TEXTS.onward}</Button>
        </div>
      )}
    </section>
  );
}

function Told({ outcome }: { outcome: Outcome }) {
  if (outcome.kind === "gone") return <Alert kind="warning">{TEXTS.gone}</Alert>;
  if (outcome.kind === "unknown") return <Alert kind="warning">{TEXTS.unknown}</Alert>;
  const { given } = outcome;
  return (
    <>
      <Answerer given={given} />
      <Facts facts={[[TEXTS.answeredAt, <Time key="at" ms={given.at_ms} />]]} />
      <AnswerDocument given={given} />
    </>
  );
}

function Answerer({ given: { principal } }: { given: GivenAnswer }) {
  return <Alert kind="warning">{TEXTS.answeredBy(useWho(principal))}</Alert>;
}

function AnswerDocument({ given: { answer } }: { given: GivenAnswer }) {
  if (answer.value === undefined) {
    return <p>{TEXTS.tooLarge(countText(answer.bytes))}</p>;
  }
  return (
    <>
      <h4>{TEXTS.given}</h4>
      <Document label={TEXTS.given} value={answer.value} />
    </>
  );
}
