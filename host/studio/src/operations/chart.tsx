// A plot of one measure over time, with its numbers in a table.
import { later } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import { Suspense, useMemo } from "react";
import { Time, timeText } from "../part/time.tsx";
import { type Curve, curvesOf, type Measure, type Report, startsOf } from "./curves.ts";
import type { Group } from "./filter.ts";
import styles from "./operations.module.css";
import { STATISTICS, TEXTS } from "./texts.ts";

const Plot = later(() => import("@wattle/page/plot"));

/** Height of the table, which is that of the plot with its legend. */
const TABLE_PX = 320;

const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 4 });

interface ChartProps {
  report: Report;
  by: Group | undefined;
  measure: Measure;
  /** Name of the time that is shown. */
  range: string;
}

/** The plot of a measure beside the table of its numbers. */
export function Chart({ report, by, measure, range }: ChartProps) {
  const curves = useMemo(() => curvesOf(report, by, measure), [report, by, measure]);
  const name = STATISTICS.measures[measure];
  return (
    <section className={styles.measure} aria-label={name} data-measure={measure}>
      <h4>{name}</h4>
      {curves.length === 0 ? (
        <p>{STATISTICS.nothing[measure]}</p>
      ) : (
        <Curves report={report} curves={curves} name={name} range={range} />
      )}
    </section>
  );
}

interface CurvesProps {
  report: Report;
  curves: readonly Curve[];
  name: string;
  range: string;
}

function Curves({ report, curves, name, range }: CurvesProps) {
  const starts = useMemo(() => startsOf(report), [report]);
  const x = useMemo(() => ({ time: starts.map((start) => new Date(start)) }), [starts]);
  const label = STATISTICS.plot(name, range);
  return (
    <div className={styles.chart}>
      <Suspense fallback={<p role="status">{TEXTS.reading}</p>}>
        <Plot label={label} x={x} series={curves} />
      </Suspense>
      <Numbers label={STATISTICS.table(name)} starts={starts} curves={curves} />
    </div>
  );
}

interface Row {
  start: number;
  values: readonly number[];
}

interface NumbersProps {
  label: string;
  starts: readonly number[];
  curves: readonly Curve[];
}

/** The intervals with a number, newest first. */
function Numbers({ label, starts, curves }: NumbersProps) {
  const rows = useMemo(
    () =>
      starts
        .map((start, at) => ({ start, values: curves.map(({ values }) => values[at] ?? 0) }))
        .filter(({ values }) => values.some((value) => value !== 0))
        .reverse(),
    [starts, curves],
  );
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        key: "start",
        header: STATISTICS.from,
        value: ({ start }) => timeText(start),
        render: ({ start }) => <Time ms={start} />,
      },
      ...curves.map(
        ({ name, total }, at): Column<Row> => ({
          key: `${at}`,
          header: `${name} (${NUMBER.format(total)})`,
          align: "end",
          value: ({ values }) => values[at] ?? 0,
          render: ({ values }) => NUMBER.format(values[at] ?? 0),
        }),
      ),
    ],
    [curves],
  );
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={rows}
      rowKey={({ start }) => start}
      maxHeight={TABLE_PX}
    />
  );
}
