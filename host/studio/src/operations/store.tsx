// The sizes of the store, and what a user can do with it.
import { useQuery } from "@tanstack/react-query";
import { type Column, DataTable } from "@wattle/page/table";
import { api, ok, type Schemas } from "../api/client.ts";
import { bytesText, countText } from "../part/amount.ts";
import { Facts, timeFact } from "../part/facts.tsx";
import { Text } from "../part/text.tsx";
import { Reading } from "../shell/failure.tsx";
import { BackUp, Compact, Verify } from "./maintenance.tsx";
import { SIZES_KEY } from "./read.ts";
import { STORE } from "./texts.ts";

type Sizes = Schemas["StoreSizesDocument"];

type Owner = Schemas["OwnerSizeDocument"];

type File = Schemas["FileSizeDocument"];

/** Interval at which a visible tab reads the sizes, which the host measures once a minute. */
const INTERVAL_MS = 60_000;

export function Store() {
  const sizes = useQuery({
    queryKey: SIZES_KEY,
    queryFn: () => ok(api.GET("/api/v1/store/sizes")),
    refetchInterval: INTERVAL_MS,
  });
  return (
    <>
      <Reading of={sizes} />
      {sizes.data !== undefined && <SizesView sizes={sizes.data} />}
      <Verify />
      <BackUp />
      <Compact />
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
