// What a user does with the store: a verification, a backup, a compaction.
import { useQueryClient } from "@tanstack/react-query";
import { Alert, Button } from "@wattle/page";
import { type ReactNode, useState } from "react";
import { api, ok, type Schemas } from "../api/client.ts";
import { bytesText } from "../part/amount.ts";
import { type Attempt, Refusal, useAttempt } from "../part/attempt.tsx";
import { Confirm } from "../part/confirm.tsx";
import { Text } from "../part/text.tsx";
import styles from "./operations.module.css";
import { SIZES_KEY } from "./read.ts";
import { STORE } from "./texts.ts";

type Report = Schemas["DamageReportDocument"];

type Damage = Schemas["DamageDocument"];

type Backup = Schemas["BackupDocument"];

type Compaction = Schemas["CompactionDocument"];

interface JobProps {
  name: string;
  busyName: string;
  note: string;
  attempt: Attempt<[]>;
  /** What came of the job. */
  children: ReactNode;
}

/** A job that starts with a button. */
function Job({ name, busyName, note, attempt, children }: JobProps) {
  return (
    <section className={styles.form} aria-label={name}>
      <p className="w-note">{note}</p>
      <p className={styles.buttons}>
        <Button onClick={attempt.act} busy={attempt.isBusy}>
          {attempt.isBusy ? busyName : name}
        </Button>
      </p>
      <Refusal error={attempt.refusal} />
      {children}
    </section>
  );
}

/** Verifies the store when a user asks for it. */
export function Verify() {
  const [report, setReport] = useState<Report>();
  const verifying = useAttempt(async () => {
    setReport(undefined);
    setReport(await ok(api.GET("/api/v1/store/verify")));
  });
  return (
    <Job name={STORE.verify} busyName={STORE.verifying} note={STORE.verifyNote} attempt={verifying}>
      {report !== undefined && <DamageReport report={report} />}
    </Job>
  );
}

function DamageReport({ report: { threads, damaged } }: { report: Report }) {
  if (damaged.length === 0) return <p role="status">{STORE.intact(threads)}</p>;
  return (
    <>
      <Alert>{STORE.damaged(damaged.length, threads)}</Alert>
      <DamageList damaged={damaged} />
    </>
  );
}

function DamageList({ damaged }: { damaged: readonly Damage[] }) {
  return (
    <ul aria-label={STORE.damages}>
      {damaged.map(({ subject, reason }) => (
        <li key={`${subject} ${reason}`}>
          <Text>{`${subject}: ${reason}`}</Text>
        </li>
      ))}
    </ul>
  );
}

/** Copies the store when a user asks for it. */
export function BackUp() {
  const client = useQueryClient();
  const [backup, setBackup] = useState<Backup>();
  const copying = useAttempt(async () => {
    setBackup(undefined);
    setBackup(await ok(api.POST("/api/v1/store/backup")));
    await client.invalidateQueries({ queryKey: SIZES_KEY });
  });
  return (
    <Job name={STORE.backUp} busyName={STORE.backingUp} note={STORE.backUpNote} attempt={copying}>
      {backup !== undefined && (
        <p role="status">
          {STORE.backedUp} <Text>{backup.folder}</Text>
        </p>
      )}
      {backup !== undefined && backup.damaged.length > 0 && (
        <>
          <Alert>{STORE.incomplete}</Alert>
          <DamageList damaged={backup.damaged} />
        </>
      )}
    </Job>
  );
}

/** Compacts the store after a question, because writes wait meanwhile. */
export function Compact() {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [compaction, setCompaction] = useState<Compaction>();
  const compacting = useAttempt(async () => {
    setCompaction(undefined);
    setCompaction(await ok(api.POST("/api/v1/store/compact")));
    setOpen(false);
    await client.invalidateQueries({ queryKey: SIZES_KEY });
  });
  const ask = () => {
    compacting.forget();
    setOpen(true);
  };
  return (
    <section className={styles.form} aria-label={STORE.compact}>
      <p className="w-note">{STORE.compactNote}</p>
      <p className={styles.buttons}>
        <Button onClick={ask}>{STORE.compact}</Button>
      </p>
      {compaction !== undefined && (
        <p role="status">
          {STORE.compacted(bytesText(compaction.before_bytes), bytesText(compaction.after_bytes))}
        </p>
      )}
      <Confirm
        open={isOpen}
        title={STORE.compactTitle}
        name={STORE.compact}
        isBusy={compacting.isBusy}
        onConfirm={compacting.act}
        onClose={() => setOpen(false)}
      >
        <p>{STORE.compactText}</p>
        <Refusal error={compacting.refusal} />
      </Confirm>
    </section>
  );
}
