// A checkpoint: its facts, what differs from another one, and the state.
import { useMemo } from "react";
import { isMissing } from "../api/missing.ts";
import { Blobs } from "../part/blob/blob.tsx";
import { digestText } from "../part/digest.ts";
import { type Fact, Facts, textFact, timeFact } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Text, visible } from "../part/text.tsx";
import { checkpointRoute, RouteLink, runViewRoute } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { EditButton } from "../travel/edit-button.tsx";
import { ChannelDiffs } from "./channel-diffs.tsx";
import { diffState } from "./diff.ts";
import type { Checkpoint, GraphPlace } from "./read.ts";
import { TEXTS } from "./texts.ts";
import { useCheckpoint } from "./use-checkpoint.ts";

interface CheckpointViewProps {
  place: GraphPlace;
  /** Its number, or `latest`. */
  checkpoint: string;
  /** Number of the checkpoint that it is compared with; by default that before it. */
  against: string | undefined;
}

export function CheckpointView({ place, checkpoint, against }: CheckpointViewProps) {
  const read = useCheckpoint(place, checkpoint);
  const { data } = read;
  if (data !== undefined) return <Parts place={place} document={data} against={against} />;
  return <Reading of={read} notFound={TEXTS.notFound} text={TEXTS.reading} />;
}

interface PartsProps {
  place: GraphPlace;
  document: Checkpoint;
  against: string | undefined;
}

function Parts({ place, document, against }: PartsProps) {
  const { id, state, metadata = {}, interrupts = [], tasks = [] } = document;
  return (
    <>
      <Facts facts={factsOf(place, document)} />
      <Difference place={place} document={document} against={against} />
      <Section title={TEXTS.state}>
        <JsonTree label={TEXTS.state} value={state} />
      </Section>
      <Blobs thread={place.thread} tenant={place.tenant} value={state} />
      <EditButton
        key={id}
        place={place}
        checkpoint={String(id)}
        onEdited={(made, go) => go(checkpointRoute(place, made.id, { ns: place.namespace }))}
      />
      {interrupts.length > 0 && (
        <Section title={TEXTS.interrupts}>
          <JsonTree label={TEXTS.interrupts} value={interrupts} />
        </Section>
      )}
      {tasks.length > 0 && (
        <Section title={TEXTS.tasks}>
          <JsonTree label={TEXTS.tasks} value={tasks} />
        </Section>
      )}
      {Object.keys(metadata).length > 0 && (
        <Section title={TEXTS.metadata}>
          <JsonTree label={TEXTS.metadata} value={metadata} />
        </Section>
      )}
    </>
  );
}

function factsOf(place: GraphPlace, document: Checkpoint): Fact[] {
  const { parent, source, step, run, version, at_ms, next, changed, writers = [] } = document;
  const { namespace, thread, tenant } = place;
  return [
    [TEXTS.source, TEXTS.step(source, step)],
    [TEXTS.time, timeFact(at_ms)],
    [TEXTS.namespace, textFact(namespace)],
    [
      TEXTS.parent,
      parent == null ? undefined : (
        <RouteLink key="parent" to={checkpointRoute(place, parent, { ns: namespace })}>
          {TEXTS.title(String(parent))}
        </RouteLink>
      ),
    ],
    [
      TEXTS.run,
      source === "update" ? undefined : <RunLink key="run" {...{ thread, tenant, run }} />,
    ],
    [TEXTS.writers, textFact(writers.join(", "))],
    [TEXTS.changed, textFact(changed.join(", "))],
    [TEXTS.next, textFact(next.join(", "))],
    [TEXTS.version, textFact(digestText(version ?? ""))],
  ];
}

function RunLink(place: Parameters<typeof runViewRoute>[0]) {
  return (
    <RouteLink to={runViewRoute(place)}>
      <Text>{place.run}</Text>
    </RouteLink>
  );
}

function Difference({ place, document, against }: PartsProps) {
  const other = against ?? document.parent?.toString();
  const { data, error } = useCheckpoint(place, other);
  const title = other === undefined ? TEXTS.difference : TEXTS.against(other);
  return (
    <Section title={title}>
      {other === undefined && <p>{TEXTS.first}</p>}
      {other !== undefined && data === undefined && error === null && (
        <p role="status">{TEXTS.readingOther}</p>
      )}
      {other !== undefined && error !== null && (
        <p>{isMissing(error) ? TEXTS.gone(other) : visible(error.message)}</p>
      )}
      {(other === undefined || data !== undefined) && (
        <Changes before={other === undefined ? undefined : data} after={document} />
      )}
    </Section>
  );
}

/** What differs between two checkpoints; the one before is absent for the first of a graph. */
function Changes({ before, after }: { before: Checkpoint | undefined; after: Checkpoint }) {
  const isParent = before === undefined || before.id === after.parent;
  const diffs = useMemo(
    () => diffState(before?.state, after.state, isParent ? after.changed : undefined),
    [before, after, isParent],
  );
  return <ChannelDiffs diffs={diffs} />;
}
