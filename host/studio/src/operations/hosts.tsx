// The live hosts that share the store.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { type Column, DataTable } from "@wattle/page/table";
import { api, ok, type Schemas } from "../api/client.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time, timeText } from "../part/time.tsx";
import { Reading } from "../shell/failure.tsx";
import { HOSTS, TEXTS } from "./texts.ts";

export type Host = Schemas["HostDocument"];

/** Interval at which a visible tab reads the hosts, in milliseconds. */
const INTERVAL_MS = 5_000;

const COLUMNS: readonly Column<Host>[] = [
  {
    key: "host",
    header: HOSTS.host,
    value: ({ host }) => host,
    render: ({ host, is_this }) => (
      <>
        <Text>{host}</Text>
        {is_this && ` (${HOSTS.self})`}
      </>
    ),
  },
  {
    key: "status",
    header: TEXTS.status,
    value: ({ status }) => status,
    render: ({ status }) => <Status name={status} />,
  },
  {
    key: "version",
    header: HOSTS.version,
    value: ({ version }) => version,
    render: ({ version }) => <Text>{version}</Text>,
  },
  {
    key: "runs",
    header: HOSTS.runs,
    align: "end",
    value: ({ runs }) => runs,
    render: ({ runs, max_runs }) => HOSTS.load(runs, max_runs),
  },
  {
    key: "silent",
    header: HOSTS.silent,
    align: "end",
    value: ({ silent_ms }) => silent_ms,
    render: ({ silent_ms }) => HOSTS.silence((silent_ms / 1_000).toFixed(1)),
  },
  {
    key: "started",
    header: HOSTS.started,
    value: ({ started_ms }) => timeText(started_ms),
    render: ({ started_ms }) => <Time ms={started_ms} />,
  },
];

/** Reads the live hosts. */
export function useHosts(): UseQueryResult<Host[]> {
  return useQuery({
    queryKey: ["hosts"],
    queryFn: () => ok(api.GET("/api/v1/hosts")),
    refetchInterval: INTERVAL_MS,
  });
}

export function Hosts() {
  const hosts = useHosts();
  const { data } = hosts;
  return (
    <>
      <Reading of={hosts} />
      {data !== undefined && (
        <DataTable
          label={HOSTS.list}
          columns={COLUMNS}
          rows={data}
          rowKey={({ host }) => host}
          empty={HOSTS.none}
        />
      )}
    </>
  );
}
