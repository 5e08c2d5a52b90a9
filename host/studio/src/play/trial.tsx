// What a run does and did: what its models write, its end, the state that it left and its calls.
import { Button } from "@wattle/page";
import type { ReactNode } from "react";
import type { RunPlace } from "../api/log.ts";
import { cancelRun } from "../api/run.ts";
import type { Thread } from "../api/thread.ts";
import { tookText } from "../part/amount.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { interruptRoute, RouteLink, runRoute } from "../router/links.tsx";
import { LiveText } from "../run/live-text.tsx";
import { Failure } from "../shell/failure.tsx";
import { Calls, GrantedFailure } from "./calls.tsx";
import { callsOf, liveText, useTrial } from "./follow.ts";
import styles from "./play.module.css";
import { RUN } from "./texts.ts";

/** A run that has ended. */
export interface Ended {
  status: string;
  thread: Thread;
}

interface TrialProps {
  place: RunPlace;
  /** What can be done with the run once it has ended. */
  children?: (ended: Ended) => ReactNode;
}

/** A run from its start to its end. Give each run a key of its own. */
export function Trial({ place, children }: TrialProps) {
  const { timeline, phase, error, end, retry } = useTrial(place);
  const { status = "running", startedMs, endedMs } = timeline.facts;
  const text = timeline.isOver ? "" : liveText(timeline);
  const took = tookText(startedMs, endedMs);
  return (
    <section className={styles.result} aria-label={RUN.result} data-status={status}>
      <div className={styles.head}>
        <Status name={status} />
        {took !== undefined && <span>{`${RUN.duration}: ${took}`}</span>}
        <RouteLink to={runRoute(place)}>{RUN.open}</RouteLink>
        {!timeline.isOver && <StopButton place={place} />}
      </div>
      <p role="status">{timeline.isOver ? "" : phase === "lost" ? RUN.lost : RUN.running}</p>
      {error !== undefined && <Failure error={error} onRetry={retry} />}
      {text !== "" && <LiveText label={RUN.streamed} text={text} />}
      {end.error !== null && <Failure error={end.error} onRetry={() => void end.refetch()} />}
      {end.data !== undefined && <End thread={end.data} status={status} tenant={place.tenant} />}
      <Calls calls={callsOf(place, timeline)} />
      {end.data !== undefined && children?.({ status, thread: end.data })}
    </section>
  );
}

/** A button that cancels a run. */
export function StopButton({ place }: { place: RunPlace }) {
  const stopping = useAttempt(() => cancelRun(place));
  return (
    <>
      <Button kind="danger" busy={stopping.isBusy} onClick={stopping.act}>
        {RUN.stop}
      </Button>
      <Refusal error={stopping.refusal} />
    </>
  );
}

interface EndProps extends Ended {
  tenant: string | undefined;
}

function End({ thread, status, tenant }: EndProps) {
  const { failure, state } = thread;
  return (
    <>
      {status === "failed" && failure != null && (
        <GrantedFailure title={RUN.failure} failure={failure} />
      )}
      <Waiting thread={thread} status={status} tenant={tenant} />
      <Section title={RUN.state} heading="h3">
        <JsonTree label={RUN.state} value={state} />
      </Section>
    </>
  );
}

/** What an interrupted run waits for. */
export function Waiting({ thread, status, tenant }: EndProps) {
  const { interrupts, next, thread_id } = thread;
  const [first] = interrupts;
  if (status !== "interrupted") return null;
  if (first === undefined) {
    return next.length === 0 ? null : (
      <p>
        <Text>{RUN.stopped(next.join(", "))}</Text>
      </p>
    );
  }
  const to = interruptRoute({ thread: thread_id, tenant }, first.id);
  return (
    <p>
      {RUN.questions(interrupts.length)} <RouteLink to={to}>{RUN.answer}</RouteLink>
    </p>
  );
}
