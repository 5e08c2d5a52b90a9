// What is known of one of two runs as a whole.
import type { RunPlace } from "../api/log.ts";
import { costText, countText, tookText } from "../part/amount.ts";
import { type Fact, Facts, textFact } from "../part/facts.tsx";
import { StatedFailure } from "../part/stated-failure.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { RouteLink, runRoute, threadRoute } from "../router/links.tsx";
import type { RunState, RunStore } from "../run/store.ts";
import { TEXTS } from "../run/texts.ts";
import type { Timeline } from "../run/timeline.ts";
import { Failure } from "../shell/failure.tsx";
import type { SideName } from "./sides.ts";
import { COMPARE } from "./texts.ts";
import styles from "./travel.module.css";

export type Places = Readonly<Record<SideName, RunPlace>>;

interface RunHeadProps {
  side: SideName;
  place: RunPlace;
  store: RunStore;
  state: RunState;
}

export function RunHead({ side, place, store, state }: RunHeadProps) {
  const { timeline } = store;
  const { status, failure } = timeline.facts;
  const { thread, run, tenant } = place;
  return (
    <section className={styles.head} aria-label={COMPARE.sides[side]}>
      <h3>
        {COMPARE.sides[side]} {status !== undefined && <Status name={status} />}
      </h3>
      <RouteLink to={runRoute(place)}>
        <Text>{COMPARE.run(run)}</Text>
      </RouteLink>
      <RouteLink to={threadRoute(thread, tenant)}>
        <Text>{COMPARE.thread(thread)}</Text>
      </RouteLink>
      <Facts facts={factsOf(timeline)} />
      {failure !== undefined && <StatedFailure title={COMPARE.failed} failure={failure} />}
      {state.error !== undefined && (
        <Failure error={state.error} notFound={COMPARE.notFound} onRetry={() => store.start()} />
      )}
    </section>
  );
}

function factsOf(timeline: Timeline): Fact[] {
  const { reason, startedMs, endedMs } = timeline.facts;
  const { calls, input, output, cost } = timeline.totals();
  return [
    [TEXTS.reason, forkText(timeline) ?? textFact(reason)],
    [TEXTS.calls, countText(calls)],
    [TEXTS.tokens, TEXTS.tokensText(input, output)],
    [TEXTS.cost, cost === undefined ? undefined : costText(cost)],
    [TEXTS.duration, tookText(startedMs, endedMs)],
  ];
}

function forkText({ facts: { fork } }: Timeline): string | undefined {
  if (fork === undefined) return undefined;
  const { checkpoint, call } = fork;
  if (call === undefined) return COMPARE.forkedAtCheckpoint(checkpoint);
  return COMPARE.forkedAtCall([...(call.scope ?? []), call.call].join("."), call.seq);
}
