// The requests that the host rejected because of a limit.
import { type Column, DataTable } from "@wattle/page/table";
import { countText } from "../part/amount.ts";
import { Reading } from "../shell/failure.tsx";
import { type Host, useHosts } from "./hosts.tsx";
import { REJECTED } from "./texts.ts";

/** A limit, with the number of requests that it rejected since the start of the host. */
interface Rejection {
  limit: string;
  /** Status of the responses. */
  status: string;
  count: number;
}

/** Returns the numbers of the host that responds, the largest first. Timeouts are no limits. */
function rejectedBy(hosts: readonly Host[]): Rejection[] {
  const cut = hosts.find(({ is_this }) => is_this)?.cut;
  const rows = Object.entries(REJECTED.limits).flatMap(([reason, limit]) => {
    const count = cut?.[reason];
    return count === undefined ? [] : [{ ...limit, count }];
  });
  return rows.sort((one, other) => other.count - one.count);
}

const COLUMNS: readonly Column<Rejection>[] = [
  {
    key: "limit",
    header: REJECTED.limit,
    value: ({ limit }) => limit,
    render: ({ limit }) => limit,
  },
  {
    key: "status",
    header: REJECTED.status,
    value: ({ status }) => status,
    render: ({ status }) => status,
  },
  {
    key: "count",
    header: REJECTED.count,
    align: "end",
    value: ({ count }) => count,
    render: ({ count }) => countText(count),
  },
];

export function Rejected() {
  const hosts = useHosts();
  const { data } = hosts;
  return (
    <>
      <h4>{REJECTED.title}</h4>
      <p className="w-note">{REJECTED.note}</p>
      <Reading of={hosts} />
      {data !== undefined && (
        <DataTable
          label={REJECTED.title}
          columns={COLUMNS}
          rows={rejectedBy(data)}
          rowKey={({ limit }) => limit}
          empty={REJECTED.none}
        />
      )}
    </>
  );
}
