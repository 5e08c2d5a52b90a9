// What differs between two host calls of a comparison, above what is known of each.
import { useMemo } from "react";
import type { LogEvent } from "../api/log.ts";
import type { Diff } from "../part/json-diff/diff.ts";
import { JsonDiff } from "../part/json-diff/json-diff.tsx";
import { Section } from "../part/section.tsx";
import { ReadEvent } from "../run/event.tsx";
import type { CallFacts, Row } from "../run/row.ts";
import type { Pair } from "./align.ts";
import { callDiff } from "./call-diff.ts";
import type { Places } from "./compare-head.tsx";
import { COMPARE } from "./texts.ts";
import styles from "./travel.module.css";

interface CallDiffsProps {
  places: Places;
  pair: Pair;
}

/** The differences of two calls. Their events are read only if the calls differ. */
export function CallDiffs({ places, pair: { left, right, relation } }: CallDiffsProps) {
  if (left?.call === undefined || right?.call === undefined) return null;
  if (relation !== "changed" && hasSameDigests(left.call, right.call)) return null;
  return <ReadDiffs places={places} left={left} right={right} />;
}

function hasSameDigests(one: CallFacts, other: CallFacts): boolean {
  return one.requestDigest === other.requestDigest && one.resultDigest === other.resultDigest;
}

interface ReadDiffsProps {
  places: Places;
  left: Row;
  right: Row;
}

function ReadDiffs({ places, left, right }: ReadDiffsProps) {
  return (
    <ReadEvent place={places.left} seq={left.seq}>
      {(one) => (
        <ReadEvent place={places.right} seq={right.seq}>
          {(other) => <Diffs left={one} right={other} />}
        </ReadEvent>
      )}
    </ReadEvent>
  );
}

function Diffs({ left, right }: { left: LogEvent; right: LogEvent }) {
  const diff = useMemo(() => callDiff(left, right), [left, right]);
  if (diff === undefined) return null;
  const { request, isUnseen, result } = diff;
  const isSame = request.changes.length === 0 && (result?.changes.length ?? 0) === 0;
  if (isSame && !isUnseen) return null;
  return (
    <section className={styles.part} aria-label={COMPARE.difference}>
      {isUnseen && <p>{COMPARE.unseen}</p>}
      <Part title={COMPARE.requests} diff={request} />
      {result !== undefined && <Part title={COMPARE.results} diff={result} />}
    </section>
  );
}

function Part({ title, diff }: { title: string; diff: Diff }) {
  if (diff.changes.length === 0) return null;
  return (
    <Section title={title} note={COMPARE.direction}>
      <JsonDiff label={title} diff={diff} />
    </Section>
  );
}
