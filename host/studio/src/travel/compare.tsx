// The comparison of two runs: what is known of each, and their rows side by side from where they
// part.
import { Alert, Button } from "@wattle/page";
import { type ComponentProps, useMemo, useState } from "react";
import { poll } from "../api/poll.ts";
import { useAppOf } from "../api/run.ts";
import { useFocusAfter } from "../part/focus-after.ts";
import { Split } from "../part/split.tsx";
import { visible } from "../part/text.tsx";
import { compareRoute, useGo, useSearchOf } from "../router/links.tsx";
import { readRun, runName } from "../router/run-text.ts";
import { name, oneOf } from "../router/search.ts";
import { nameOf } from "../run/names.ts";
import { RunStore } from "../run/store.ts";
import { useRunStore } from "../run/use-store.ts";
import { useTitle } from "../shell/title.ts";
import { type Alignment, align, fromParting, isApart } from "./align.ts";
import { ChooseRun } from "./choose.tsx";
import { type Places, RunHead } from "./compare-head.tsx";
import { PairPanel, PairTable, rowOf } from "./compare-table.tsx";
import { EndStates } from "./end-states.tsx";
import { SIDES } from "./sides.ts";
import { COMPARE } from "./texts.ts";
import styles from "./travel.module.css";

/** The search parameters of the view: both runs, their tenant, and the row that is shown. */
const SEARCH = {
  left: runName,
  right: runName,
  tenant: name,
  side: oneOf(SIDES),
  at: name,
  show: oneOf(["states"]),
};

export default function ComparePage() {
  const { left = "", right = "", tenant } = useSearchOf(SEARCH);
  useTitle(COMPARE.title);
  const [one, other] = [readRun(left), readRun(right)];
  if (one === undefined) {
    return (
      <div className={styles.compare}>
        <h2>{COMPARE.title}</h2>
        <p>{COMPARE.none}</p>
      </div>
    );
  }
  // Other runs are another view.
  const key = JSON.stringify([left, right, tenant]);
  if (other === undefined) return <ChooseRun key={key} place={{ ...one, tenant }} />;
  return (
    <CompareView key={key} places={{ left: { ...one, tenant }, right: { ...other, tenant } }} />
  );
}

function CompareView({ places }: { places: Places }) {
  // A tab has one stream. A run that was just forked is the right one, and its origin has ended.
  const [left, leftState] = useRunStore(() => new RunStore(places.left, poll));
  const [right, rightState] = useRunStore(() => new RunStore(places.right));
  const isOneThread = places.left.thread === places.right.thread;
  const versions = `${leftState.version} ${rightState.version}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timelines differ in each version.
  const alignment = useMemo(
    () => align(left.timeline, right.timeline, isOneThread),
    [left, right, isOneThread, versions],
  );
  const isRead = leftState.phase !== "reading" && rightState.phase !== "reading";
  return (
    <div className={styles.compare}>
      <h2>{COMPARE.title}</h2>
      <div className={styles.heads}>
        <RunHead side="left" place={places.left} store={left} state={leftState} />
        <RunHead side="right" place={places.right} store={right} state={rightState} />
      </div>
      <OtherGraphs
        places={places}
        graphs={[left.timeline.facts.graph, right.timeline.facts.graph]}
      />
      <p role="status">{isRead ? "" : COMPARE.reading}</p>
      {isRead && (
        <Pairs
          places={places}
          alignment={alignment}
          ends={{ left: left.timeline.facts, right: right.timeline.facts }}
        />
      )}
    </div>
  );
}

interface OtherGraphsProps {
  places: Places;
  /** Names of the graphs; `undefined` for a run that has not begun. */
  graphs: readonly [left: string | undefined, right: string | undefined];
}

/** Says that the runs are of different graphs, by their apps and names. */
function OtherGraphs({ places, graphs: [one, other] }: OtherGraphsProps) {
  const left = useAppOf(places.left).data;
  const right = useAppOf(places.right).data;
  if (one === undefined || other === undefined) return null;
  const areAppsKnown = left !== undefined && right !== undefined;
  if (one === other && (!areAppsKnown || left === right)) return null;
  const text = areAppsKnown
    ? COMPARE.otherGraphs(`${left} / ${one}`, `${right} / ${other}`)
    : COMPARE.otherGraphs(one, other);
  return <Alert kind="warning">{visible(text)}</Alert>;
}

interface PairsProps extends ComponentProps<typeof EndStates> {
  alignment: Alignment;
}

/** The rows of both runs, and the panel of the selected ones or of the end states. */
function Pairs({ places, alignment, ends }: PairsProps) {
  const { side = "left", at, show } = useSearchOf(SEARCH);
  const go = useGo();
  const [isFolded, setFolded] = useState(true);
  const { pairs } = alignment;
  const selected = at === undefined ? -1 : pairs.findIndex((pair) => pair[side]?.id === at);
  const current = pairs[selected];
  const later = useMemo(() => fromParting(alignment), [alignment]);
  // A row that the address names is shown in any case.
  const shown = isFolded && (current === undefined || later.includes(current)) ? later : pairs;
  const close = () => go(compareRoute(places.left, places.right), { replace: true });
  const areStatesShown = show === "states" && current === undefined;
  const toggleStates = () =>
    areStatesShown ? close() : go(compareRoute(places.left, places.right, "states"));
  const pairPanel = current && <PairPanel key={current.id} places={places} pair={current} />;
  const states = areStatesShown && <EndStates places={places} ends={ends} />;
  const opener = areStatesShown ? 'button[data-part="states"]' : undefined;
  useFocusAfter(current === undefined ? opener : `a[data-pair="${current.id}"]`);
  return (
    <>
      <div className={styles.tools}>
        <p>{partingText(alignment)}</p>
        {later.length < pairs.length && (
          <Button aria-pressed={shown === pairs} onClick={() => setFolded(shown === pairs)}>
            {shown === pairs ? COMPARE.hideCommon : COMPARE.showCommon(pairs.length - later.length)}
          </Button>
        )}
        <Button aria-pressed={areStatesShown} onClick={toggleStates} data-part="states">
          {COMPARE.states}
        </Button>
      </div>
      <Split
        label={current === undefined ? COMPARE.endStates : visible(nameOf(rowOf(current)))}
        panel={pairPanel || states || undefined}
        onClose={close}
      >
        <PairTable
          places={places}
          pairs={shown}
          current={current?.id}
          shown={current === undefined ? undefined : shown.indexOf(current)}
        />
      </Split>
    </>
  );
}

function partingText(alignment: Alignment): string {
  const pair = alignment.pairs[alignment.common];
  if (pair === undefined) return COMPARE.same;
  const row = visible(nameOf(rowOf(pair)));
  return isApart(alignment) ? COMPARE.apart(row) : COMPARE.parting(row);
}
