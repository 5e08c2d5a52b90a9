// The states with which two runs ended, and what differs between them.
import { useMemo } from "react";
import type { RunPlace } from "../api/log.ts";
import { type Fact, Facts } from "../part/facts.tsx";
import { checkpointRoute, RouteLink } from "../router/links.tsx";
import type { RunFacts } from "../run/facts.ts";
import { Reading } from "../shell/failure.tsx";
import { ChannelDiffs } from "../state/channel-diffs.tsx";
import type { Checkpoint } from "../state/read.ts";
import { TEXTS } from "../state/texts.ts";
import { useCheckpoint } from "../state/use-checkpoint.ts";
import type { Places } from "./compare-head.tsx";
import { endDiff } from "./end-diff.ts";
import { SIDES, type SideName } from "./sides.ts";
import { COMPARE } from "./texts.ts";

/** The end of a run, with the newest checkpoint of its root graph. */
type End = Pick<RunFacts, "status" | "checkpoint">;

interface EndStatesProps {
  places: Places;
  ends: Readonly<Record<SideName, End>>;
}

export function EndStates({ places, ends }: EndStatesProps) {
  const left = useCheckpoint(rootOf(places.left), checkpointOf(ends.left)?.toString());
  const right = useCheckpoint(rootOf(places.right), checkpointOf(ends.right)?.toString());
  const reads = { left, right };
  const facts = SIDES.map((side) => factOf(side, places[side], ends[side]));
  const known = SIDES.filter((side) => checkpointOf(ends[side]) !== undefined);
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

/** Returns the checkpoint with the end state. A run that goes on makes one after the other. */
function checkpointOf({ status, checkpoint }: End): number | undefined {
  return status === undefined ? undefined : checkpoint;
}

function factOf(side: SideName, place: RunPlace, end: End): Fact {
  const checkpoint = checkpointOf(end);
  if (checkpoint === undefined) {
    return [COMPARE.sides[side], end.status === undefined ? COMPARE.goesOn : COMPARE.noCheckpoint];
  }
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
