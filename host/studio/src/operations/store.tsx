// The sizes of the store, and the check of all that is stored.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client.ts";
import { bytesText, countText } from "../part/amount.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { Facts, timeFact } from "../part/facts.tsx";
import { Text } from "../part/text.tsx";
import { Reading } from "../shell/failure.tsx";
import styles from "./operations.module.css";
import { STORE } from "./texts.ts";

type Sizes = Schemas["StoreSizesDocument"];

type Owner = Schemas["OwnerSizeDocument"];

type File = Schemas["FileSizeDocument"];

/** Interval at which a visible tab reads the sizes, which the host measures once a minute. */
const INTERVAL_MS = 60_000;

export function Store() {
  const sizes = useQuery({
    queryKey: ["store-sizes"],
    queryFn: () => ok(api.GET("/api/v1/store/sizes")),
    refetchInterval: INTERVAL_MS,
  });
  return (
    <>
      <Reading of={sizes} />
      {sizes.data !== undefined && <SizesView sizes={sizes.data} />}
      <Verify />
    </>
  );
}

function SizesView({ sizes }: { sizes: Sizes }) {
  const { measured_ms, threads, bytes, database_bytes, files, is_complete } = sizes;
  return (
    <>
      <Facts
        facts={[
          [STORE.threads, countText(threads)],
          [STORE.bytes, bytesText(bytes)],
          [STORE.database, database_bytes == null ? undefined : bytesText(database_bytes)],
          [STORE.measured, timeFact(measured_ms)],
        ]}
      />
      <Owners label={STORE.apps} rows={sizes.apps} unnamed={STORE.noApp} />
      <Owners label={STORE.tenants} rows={sizes.tenants} unnamed={STORE.noTenant} />
      <h4>{STORE.files}</h4>
      <DataTable
        label={STORE.files}
        columns={FILES}
        rows={files}
        rowKey={({ name }) => name}
        empty={STORE.noFiles}
      />
      {!is_complete && <p className="w-note">{STORE.partial}</p>}
    </>
  );
}

const FILES: readonly Column<File>[] = [
  {
    key: "name",
    header: STORE.file,
    value: ({ name }) => name,
    render: ({ name, is_folder }) => <Text>{is_folder ? `${name}/` : name}</Text>,
  },
  {
    key: "files",
    header: STORE.count,
    align: "end",
    value: ({ files }) => files,
    render: ({ files }) => countText(files),
  },
  {
    key: "bytes",
    header: STORE.size,
    align: "end",
    value: ({ bytes }) => bytes,
    render: ({ bytes }) => bytesText(bytes),
  },
];

interface OwnersProps {
  label: string;
  rows: readonly Owner[];
  /** Name of the row of threads without an owner. */
  unnamed: string;
}

function Owners({ label, rows, unnamed }: OwnersProps) {
  const nameOf = ({ name, is_other }: Owner) => name ?? (is_other ? STORE.others : unnamed);
  const columns: readonly Column<Owner>[] = [
    {
      key: "name",
      header: label,
      value: nameOf,
      render: (row) => <Text>{nameOf(row)}</Text>,
    },
    {
      key: "threads",
      header: STORE.threads,
      align: "end",
      value: ({ threads }) => threads,
      render: ({ threads }) => countText(threads),
    },
    {
      key: "bytes",
      header: STORE.size,
      align: "end",
      value: ({ bytes }) => bytes,
      render: ({ bytes }) => bytesText(bytes),
    },
  ];
  return (
    <>
      <h4>{label}</h4>
      <DataTable label={label} columns={columns} rows={rows} empty={STORE.noThreads} />
    </>
  );
}

interface Damages {
  threads: number;
  damaged: readonly { subject: string; reason: string }[];
}

/** Verifies the store when a user asks for it. */
function Verify() {
  const [report, setReport] = useState<Damages>();
  const verifying = useAttempt(async () => {
    setReport(undefined);
    // The description of the host has no form for this document.
    const read: unknown = await ok(api.GET("/api/v1/store/verify"));
    setReport(read as Damages);
  });
  return (
    <section className={styles.form} aria-label={STORE.verify}>
      <p className="w-note">{STORE.verifyNote}</p>
      <p className={styles.buttons}>
        <Button onClick={verifying.act} busy={verifying.isBusy}>
          {verifying.isBusy ? STORE.verifying : STORE.verify}
        </Button>
      </p>
      <Refusal error={verifying.refusal} />
      {report !== undefined && <DamageReport report={report} />}
    </section>
  );
}

function DamageReport({ report: { threads, damaged } }: { report: Damages }) {
  if (damaged.length === 0) return <p role="status">{STORE.intact(threads)}</p>;
  return (
    <>
      <Alert>{STORE.damaged(damaged.length, threads)}</Alert>
      <ul aria-label={STORE.damages}>
        {damaged.map(({ subject, reason }) => (
          <li key={`${subject} ${reason}`}>
            <Text>{`${subject}: ${reason}`}</Text>
          </li>
        ))}
      </ul>
    </>
  );
}
