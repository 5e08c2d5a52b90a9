// Runs, failures, model calls, tokens and cost over time.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { SelectField } from "@wattle/page";
import { useAccess } from "../access/access.tsx";
import { tenantOfList } from "../access/tenant.ts";
import { api, ok } from "../api/client.ts";
import { Reading } from "../shell/failure.tsx";
import { Chart } from "./chart.tsx";
import { measuresOf, type Report, stepOf, totalOf } from "./curves.ts";
import { GROUPS, type Group, type OperationsFilter, RANGE_NAMES, RANGES } from "./filter.ts";
import { AppFilter, Filters, useSet } from "./filters.tsx";
import { SCAN_INTERVAL_MS } from "./read.ts";
import { STATISTICS, TEXTS } from "./texts.ts";

const DEFAULT_RANGE = "day";

/** Reads the statistics of the time of a filter, one series for each `by`. */
export function useStatistics(
  { app, tenant, range = DEFAULT_RANGE }: OperationsFilter,
  by: Group | undefined,
): UseQueryResult<Report> {
  const named = tenantOfList(tenant, useAccess());
  const { step, count } = RANGES[range];
  return useQuery({
    queryKey: ["statistics", range, by, app, named],
    queryFn: () => {
      const query = {
        step,
        from_ms: Date.now() - (count - 1) * stepOf({ step }),
        ...(by === undefined ? {} : { by }),
        ...(app === undefined ? {} : { app }),
        ...(named === undefined ? {} : { tenant: named }),
      };
      return ok(api.GET("/api/v1/statistics", { params: { query } }));
    },
    refetchInterval: SCAN_INTERVAL_MS,
  });
}

/** The choice of a time. */
export function RangeFilter({ filter }: { filter: OperationsFilter }) {
  const set = useSet(filter);
  return (
    <SelectField
      label={STATISTICS.range}
      value={filter.range ?? DEFAULT_RANGE}
      onChange={set("range")}
      options={RANGE_NAMES.map((value) => ({ value, name: STATISTICS.ranges[value] }))}
    />
  );
}

export function Statistics({ filter }: { filter: OperationsFilter }) {
  const { is_operator } = useAccess();
  const set = useSet(filter);
  // Series of tenants are the operator's, and a list of one tenant has none.
  const groups = GROUPS.filter(
    (group) => group !== "tenant" || (is_operator && filter.tenant === undefined),
  );
  const by = groups.find((group) => group === filter.by);
  const statistics = useStatistics(filter, by);
  const { data } = statistics;
  return (
    <>
      <Filters filter={filter}>
        <RangeFilter filter={filter} />
        <SelectField
          label={STATISTICS.by}
          value={by ?? ""}
          onChange={set("by")}
          options={[
            { value: "", name: STATISTICS.everything },
            ...groups.map((value) => ({ value, name: STATISTICS.groups[value] })),
          ]}
        />
        <AppFilter filter={filter} />
      </Filters>
      <Reading of={statistics} tenantNeeded={TEXTS.tenantNeeded} />
      {data !== undefined && <Charts report={data} by={by} range={filter.range ?? DEFAULT_RANGE} />}
    </>
  );
}

interface ChartsProps {
  report: Report;
  by: Group | undefined;
  range: keyof typeof RANGES;
}

function Charts({ report, by, range }: ChartsProps) {
  const unpriced = totalOf(report, ({ unpriced_tokens }) => unpriced_tokens);
  return (
    <>
      {!report.is_complete && <p className="w-note">{STATISTICS.incomplete}</p>}
      {measuresOf(by).map((measure) => (
        <Chart
          key={measure}
          report={report}
          by={by}
          measure={measure}
          range={STATISTICS.ranges[range]}
        />
      ))}
      {unpriced > 0 && <p className="w-note">{STATISTICS.unpriced(unpriced)}</p>}
    </>
  );
}
