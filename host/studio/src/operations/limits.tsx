// The limits that runs and requests reached, and the codes with which runs failed.
import { type Column, DataTable } from "@wattle/page/table";
import { Guarded } from "../access/access.tsx";
import { countText } from "../part/amount.ts";
import { Text } from "../part/text.tsx";
import { RouteLink, threadsRoute } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import type { Report } from "./curves.ts";
import type { OperationsFilter } from "./filter.ts";
import { AppFilter, Filters } from "./filters.tsx";
import { Rejected } from "./rejected.tsx";
import { RangeFilter, useStatistics } from "./statistics.tsx";
import { LIMITS, TEXTS } from "./texts.ts";

/** A number of runs of an app with the same limit, or the same code. */
export interface Reached {
  name: string;
  /** The app; absent for those of several apps. */
  app: string | undefined;
  runs: number;
}

/** Returns the numbers of all apps, the largest first. */
export function reachedIn(report: Report, of: "limits" | "failures"): Reached[] {
  const rows = report.series.flatMap(({ name: app, total }) =>
    Object.entries(total[of]).map(([name, runs]) => ({ name, app: app ?? undefined, runs })),
  );
  return rows.sort((one, other) => other.runs - one.runs);
}

function columnsOf(
  header: string,
  link: (row: Reached) => string,
  tenant: string | undefined,
): readonly Column<Reached>[] {
  return [
    {
      key: "name",
      header,
      value: ({ name }) => name,
      render: ({ name }) => <Text>{name}</Text>,
    },
    {
      key: "app",
      header: TEXTS.app,
      value: ({ app }) => app,
      render: ({ app }) => (app === undefined ? LIMITS.other : <Text>{app}</Text>),
    },
    {
      key: "runs",
      header: LIMITS.runs,
      align: "end",
      value: ({ runs }) => runs,
      render: ({ runs }) => countText(runs),
    },
    {
      key: "threads",
      header: LIMITS.show,
      render: (row) => {
        const failure = link(row);
        if (failure === LIMIT_OTHER) return null;
        const { app } = row;
        const values = { failure, ...(app === undefined ? {} : { app }) };
        const of = tenant === undefined ? {} : { tenant };
        return <RouteLink to={threadsRoute({ ...values, ...of })}>{LIMITS.show}</RouteLink>;
      },
    },
  ];
}

/** The code of a run that reached a limit. */
const LIMIT_CODE = "limit";

/** The name under which the host counts codes of guests, of which no thread has the code. */
const LIMIT_OTHER = "other";

export function Limits({ filter }: { filter: OperationsFilter }) {
  const statistics = useStatistics(filter, "app");
  const { data } = statistics;
  const limits = data && reachedIn(data, "limits");
  const failures = data && reachedIn(data, "failures");
  return (
    <>
      <Filters filter={filter}>
        <RangeFilter filter={filter} />
        <AppFilter filter={filter} />
      </Filters>
      <Reading of={statistics} tenantNeeded={TEXTS.tenantNeeded} />
      {limits !== undefined && (
        <DataTable
          label={LIMITS.list}
          columns={columnsOf(LIMITS.limit, () => LIMIT_CODE, filter.tenant)}
          rows={limits}
          empty={LIMITS.none}
        />
      )}
      {failures !== undefined && (
        <>
          <h4>{LIMITS.failures}</h4>
          <DataTable
            label={LIMITS.failures}
            columns={columnsOf(LIMITS.code, ({ name }) => name, filter.tenant)}
            rows={failures}
            empty={LIMITS.noFailures}
          />
        </>
      )}
      <Guarded need="operator">
        <Rejected />
      </Guarded>
    </>
  );
}
