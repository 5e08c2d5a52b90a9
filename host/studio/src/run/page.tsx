// A run: its facts, and one of its views, such as its timeline.
import { Suspense } from "react";
import type { RunPlace } from "../api/log.ts";
import { type Run, useRun } from "../api/run.ts";
import { costText, countText, durationText, tookText } from "../part/amount.ts";
import { digestText } from "../part/digest.ts";
import { type Fact, Facts, textFact, timeFact } from "../part/facts.tsx";
import { StatedFailure } from "../part/stated-failure.tsx";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { SaveRun } from "../play/save-run.tsx";
import {
  chooseRunRoute,
  RouteLink,
  runViewRoute,
  threadRoute,
  useParam,
  useSearchOf,
} from "../router/links.tsx";
import { name, oneOf } from "../router/search.ts";
import { Failure } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { RunControl } from "../travel/control.tsx";
import { PendingCallsOf } from "../travel/settle.tsx";
import styles from "./run.module.css";
import { RunStore } from "./store.ts";
import { TEXTS } from "./texts.ts";
import type { Timeline } from "./timeline.ts";
import { useRunStore } from "./use-store.ts";
import { VIEWS } from "./views.tsx";

/** The search parameters of all views. Each view has others. */
const SEARCH = { view: oneOf(VIEWS.map(({ name }) => name)), tenant: name };

/** Interval at which a visible tab reads a run that has not ended, in milliseconds. */
const INTERVAL_MS = 5_000;

export default function RunPage() {
  const [thread, run] = [useParam("thread"), useParam("run")];
  const { tenant } = useSearchOf(SEARCH);
  // Another run is another view.
  const key = JSON.stringify([thread, run, tenant]);
  return <RunView key={key} place={{ thread, run, tenant }} />;
}

function RunView({ place }: { place: RunPlace }) {
  const { thread, run, tenant } = place;
  const { view } = useSearchOf(SEARCH);
  const { View } = VIEWS.find(({ name }) => name === view) ?? VIEWS[0];
  useTitle(TEXTS.title(visible(run)));
  const [store, state] = useRunStore(() => new RunStore(place));
  const { timeline } = store;
  const { version } = state;
  return (
    <div className={styles.run} data-phase={state.phase}>
      <div className={styles.head}>
        <RouteLink to={threadRoute(thread, tenant)}>
          <Text>{TEXTS.back(thread)}</Text>
        </RouteLink>
        <h2>
          <Text>{TEXTS.title(run)}</Text>
        </h2>
        <RouteLink to={chooseRunRoute(place)}>{TEXTS.compare}</RouteLink>
      </div>
      {state.error !== undefined && (
        <Failure error={state.error} notFound={TEXTS.notFound} onRetry={() => store.start()} />
      )}
      <Summary place={place} timeline={timeline} />
      <p role="status">{TEXTS.phases[state.phase]}</p>
      <Views place={place} current={View} />
      <Suspense fallback={<p role="status">{TEXTS.opening}</p>}>
        <View place={place} store={store} version={version} />
      </Suspense>
    </div>
  );
}

/** The links to the views of the run. */
function Views({ place, current }: { place: RunPlace; current: (typeof VIEWS)[number]["View"] }) {
  return (
    <nav className={styles.views} aria-label={TEXTS.views}>
      {VIEWS.map(({ name, title, View }, index) => (
        <RouteLink
          key={name}
          // The first view needs no name in the address.
          to={runViewRoute(place, { view: index === 0 ? undefined : name })}
          aria-current={View === current ? "page" : undefined}
        >
          {title}
        </RouteLink>
      ))}
    </nav>
  );
}

/** What is known of the run as a whole. */
function Summary({ place, timeline }: { place: RunPlace; timeline: Timeline }) {
  const { facts, isOver } = timeline;
  // The events of a run say when it ends. A run that waits for its turn has none.
  const { data } = useRun(place, isOver ? false : INTERVAL_MS);
  const status = facts.status ?? data?.status;
  const { calls, input, output, cost } = timeline.totals();
  return (
    <>
      <div className={styles.summary}>
        {status !== undefined && <Status name={status} />}
        <span>{`${TEXTS.calls}: ${countText(calls)}`}</span>
        <span>{`${TEXTS.tokens}: ${TEXTS.tokensText(input, output)}`}</span>
        {cost !== undefined && <span>{`${TEXTS.cost}: ${costText(cost)}`}</span>}
      </div>
      <RunControl place={place} status={status} />
      {status === "pending" && <p>{TEXTS.waiting}</p>}
      {isOver && status !== "completed" && (
        <div className={styles.doubt}>
          <PendingCallsOf place={place} />
        </div>
      )}
      {facts.failure && <StatedFailure title={TEXTS.failure} failure={facts.failure} />}
      <div className={styles.case}>
        <SaveRun place={place} facts={facts} />
      </div>
      <details className={styles.facts}>
        <summary>{TEXTS.facts}</summary>
        <Facts facts={factsOf(timeline, data)} />
      </details>
    </>
  );
}

function factsOf(timeline: Timeline, run: Run | undefined): Fact[] {
  const { graph, reason, digest, startedMs, endedMs, recoveries, isDrained } = timeline.facts;
  const { modelCalls, guestUs, providerUs, storeUs } = timeline.totals();
  return [
    [TEXTS.graph, textFact(graph)],
    [TEXTS.reason, textFact(reason)],
    [TEXTS.version, digest && digestText(digest)],
    [TEXTS.requested, timeFact(run?.created_ms)],
    [TEXTS.started, timeFact(startedMs)],
    [TEXTS.ended, timeFact(endedMs)],
    [TEXTS.duration, tookText(startedMs, endedMs)],
    [TEXTS.modelCalls, countText(modelCalls)],
    [TEXTS.guestTime, durationText(guestUs)],
    [TEXTS.providerTime, durationText(providerUs)],
    [TEXTS.storeTime, durationText(storeUs)],
    [TEXTS.recoveries, recoveries > 0 ? countText(recoveries) : undefined],
    [TEXTS.drained, isDrained ? TEXTS.yes : undefined],
  ];
}
