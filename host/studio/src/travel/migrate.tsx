// The migration of a thread to the current code: what it would change, and then the change itself.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Dialog, toast } from "@wattle/page";
import { useState } from "react";
import type { ThreadPlace } from "../api/log.ts";
import type { Thread } from "../api/thread.ts";
import { useVersions } from "../graph/read.ts";
import { Checkbox } from "../part/checkbox.tsx";
import { digestText } from "../part/digest.ts";
import { type Fact, Facts } from "../part/facts.tsx";
import { useFocusAfter } from "../part/focus-after.ts";
import { JsonEditor } from "../part/json-editor.tsx";
import { parsed } from "../part/parse-json.ts";
import { Section } from "../part/section.tsx";
import { Text, visible } from "../part/text.tsx";
import { Refusal, useAction } from "./action.tsx";
import { type Migration, type MigrationOptions, migrate } from "./requests.ts";
import { MIGRATE } from "./texts.ts";
import styles from "./travel.module.css";

/** New values of channels as JSON texts. */
type Texts = ReadonlyMap<string, string>;

interface MigrateProps {
  place: ThreadPlace;
  thread: Thread;
}

/** The button that opens the migration, unless the thread is pinned to the current code. */
export function Migrate({ place, thread: { app, graph, version } }: MigrateProps) {
  const [isOpen, setOpen] = useState(false);
  const { data, isPending } = useVersions(app, graph);
  const current = data?.find(({ is_current }) => is_current);
  useFocusAfter(isOpen ? '[data-action="migrate"]' : undefined);
  // Without the list, the report says whether there is anything to do.
  if (!isOpen && (isPending || current?.version === version)) return null;
  return (
    <>
      <Button data-action="migrate" onClick={() => setOpen(true)}>
        {MIGRATE.open}
      </Button>
      {isOpen && <MigrateDialog place={place} onClose={() => setOpen(false)} />}
    </>
  );
}

interface MigrateDialogProps {
  place: ThreadPlace;
  onClose: () => void;
}

function MigrateDialog({ place, onClose }: MigrateDialogProps) {
  const [drop, setDrop] = useState(false);
  const [texts, setTexts] = useState<Texts>(new Map());
  const [checked, setChecked] = useState<Texts>(texts);
  const options = { drop, set: valuesOf(checked) };
  const { data: report, error, isFetching, refetch, keep } = useReport(place, options);
  const migrating = useAction(async () => {
    const made = await migrate(place, options, false);
    if (!made.applied) return keep(made);
    toast(MIGRATE.migrated(digestText(made.to)));
    onClose();
  });
  const isChecked = texts === checked;
  const canMigrate = report !== undefined && isPossible(report) && isChecked && !isFetching;
  return (
    <Dialog
      open
      title={MIGRATE.title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{MIGRATE.close}</Button>
          <Button
            kind="danger"
            busy={migrating.isBusy}
            disabled={!canMigrate}
            onClick={migrating.act}
          >
            {MIGRATE.migrate}
          </Button>
        </>
      }
    >
      <div className={styles.part}>
        <p role="status">{isFetching ? MIGRATE.checking : report && summaryOf(report)}</p>
        {error !== null && (
          <>
            <Refusal error={error} />
            <Button onClick={() => void refetch()}>{MIGRATE.check}</Button>
          </>
        )}
        {report !== undefined && <Report report={report} />}
        {report !== undefined && report.from !== report.to && (
          <Options
            report={report}
            drop={drop}
            onDrop={setDrop}
            texts={texts}
            onTexts={setTexts}
            // The same texts are checked again, because the thread may have changed.
            onCheck={() => (isChecked ? void refetch() : setChecked(texts))}
          />
        )}
        <Refusal error={migrating.refusal} />
      </div>
    </Dialog>
  );
}

/** Reads what a migration with these options would change. */
function useReport({ thread, tenant }: ThreadPlace, options: MigrationOptions) {
  const client = useQueryClient();
  const queryKey = ["migration", thread, tenant, options];
  const query = useQuery({
    queryKey,
    queryFn: () => migrate({ thread, tenant }, options, true),
    // A dry run holds the thread for a moment, so it is made when a user asks for it.
    refetchOnWindowFocus: false,
    gcTime: 0,
  });
  return { ...query, keep: (report: Migration) => client.setQueryData(queryKey, report) };
}

/** Returns the values of the texts that have one. The editor says which ones have none. */
function valuesOf(texts: Texts): Record<string, unknown> {
  const entries = [...texts].flatMap(([channel, text]) => {
    const found = parsed(text);
    return "value" in found ? [[channel, found.value] as const] : [];
  });
  return Object.fromEntries(entries);
}

function isPossible({ from, to, obstacles, applied }: Migration): boolean {
  return from !== to && obstacles.length === 0 && !applied;
}

function summaryOf({ from, to, obstacles, changes }: Migration): string {
  if (from === to) return MIGRATE.current;
  if (obstacles.length > 0) return MIGRATE.impossible(obstacles.length);
  return changes.length === 0 ? MIGRATE.unchanged : MIGRATE.possible;
}

function Report({ report: { from, to, changes, obstacles } }: { report: Migration }) {
  const facts: Fact[] = [
    [MIGRATE.from, digestText(from)],
    [MIGRATE.to, digestText(to)],
  ];
  return (
    <>
      <Facts facts={facts} />
      <Lines title={MIGRATE.obstacles} lines={obstacles.map(obstacleText)} />
      <Lines title={MIGRATE.changes} lines={changes.map(changeText)} />
    </>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <Section title={title} heading="h3">
      <ul>
        {lines.map((line) => (
          <li key={line}>
            <Text>{line}</Text>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function changeText(change: Migration["changes"][number]): string {
  if (change.kind === "task_restarted") {
    return MIGRATE.restarted(change.node, change.interrupts ?? 0);
  }
  return MIGRATE.channelKinds[change.kind](change.channel);
}

function obstacleText(obstacle: Migration["obstacles"][number]): string {
  switch (obstacle.kind) {
    case "channel_gone":
      return MIGRATE.channelGone(obstacle.channel);
    case "value_invalid":
      return MIGRATE.valueInvalid(obstacle.channel, obstacle.message);
    case "node_gone":
      return MIGRATE.nodeGone(obstacle.node);
    case "barrier_gone":
      return MIGRATE.barrierGone(obstacle.barrier);
  }
}

interface OptionsProps {
  report: Migration;
  drop: boolean;
  onDrop: (drop: boolean) => void;
  texts: Texts;
  onTexts: (texts: Texts) => void;
  onCheck: () => void;
}

/** What removes obstacles: permission to drop values, and new values. */
function Options({ report, drop, onDrop, texts, onTexts, onCheck }: OptionsProps) {
  const invalid = report.obstacles.flatMap((obstacle) =>
    obstacle.kind === "value_invalid" ? [obstacle.channel] : [],
  );
  const channels = [...new Set([...texts.keys(), ...invalid])].sort();
  const isGone = report.obstacles.some(({ kind }) => kind === "channel_gone");
  const entered = [...texts.values()].filter((text) => text.trim() !== "");
  const isNoValue = entered.some((text) => "problem" in parsed(text));
  return (
    <>
      {(isGone || drop) && (
        <Checkbox checked={drop} onChange={onDrop}>
          {MIGRATE.drop}
        </Checkbox>
      )}
      {channels.map((channel) => (
        <JsonEditor
          key={channel}
          label={MIGRATE.value(visible(channel))}
          text={texts.get(channel) ?? ""}
          onText={(text) => onTexts(new Map(texts).set(channel, text))}
        />
      ))}
      {isNoValue && <Alert kind="warning">{MIGRATE.noValue}</Alert>}
      <Button disabled={isNoValue} onClick={onCheck}>
        {MIGRATE.check}
      </Button>
    </>
  );
}
