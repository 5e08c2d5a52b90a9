// The states with which two runs ended, and what differs between them.
import { useMemo } from "react";
import type { RunPlace } from "../api/log.ts";
import { type Fact, Facts } from "../part/facts.tsx";
import { checkpointRoute, RouteLink } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { ChannelDiffs } from "../state/channel-diffs.tsx";
import type { Checkpoint } from "../state/read.ts";
import { TEXTS } from "../state/texts.ts";
import { useCheckpoint } from "../state/use-checkpoint.ts";
import type { Places } from "./compare-head.tsx";
import { endDiff } from "./end-diff.ts";
import { SIDES, type SideName } from "./sides.ts";
import { COMPARE } from "./texts.ts";

/** The newest checkpoints of the root graphs of both runs; `undefined` for a run without one. */
export type LastCheckpoints = Readonly<Record<SideName, number | undefined>>;

interface EndStatesProps {
  places: Places;
  checkpoints: LastCheckpoints;
}

export function EndStates({ places, checkpoints }: EndStatesProps) {
  const left = useCheckpoint(rootOf(places.left), checkpoints.left?.toString());
  const right = useCheckpoint(rootOf(places.right), checkpoints.right?.toString());
  const reads = { left, right };
  const facts = SIDES.map((side) => factOf(side, places[side], checkpoints[side]));
  const known = SIDES.filter((side) => checkpoints[side] !== undefined);
  return (
    <>
      <Facts facts={facts} />
      {known.map((side) => (
        <Reading key={side} of={reads[side]} notFound={TEXTS.notFound} text={TEXTS.reading} />
      ))}
      {left.data !== undefined && right.data !== undefined && (
        <Difference left={left.data} right={right.data} />
      )}
    </>
  );
}

function rootOf({ thread, tenant }: RunPlace) {
  return { thread, tenant, namespace: "" };
}

function factOf(side: SideName, place: RunPlace, checkpoint: number | undefined): Fact {
  if (checkpoint === undefined) return [COMPARE.sides[side], COMPARE.noCheckpoint];
  const link = (
    <RouteLink to={checkpointRoute(place, checkpoint)}>{TEXTS.title(String(checkpoint))}</RouteLink>
  );
  return [COMPARE.sides[side], link];
}

function Difference({ left, right }: { left: Checkpoint; right: Checkpoint }) {
  const diffs = useMemo(() => endDiff(left.state, right.state), [left, right]);
  return (
    <>
      <p>{COMPARE.statesNote}</p>
      <ChannelDiffs diffs={diffs} />
    </>
  );
}
