// What a plot of statistics shows: the numbers of each interval, without React.
import type { Schemas } from "../api/client.ts";
import { visible } from "../part/text.tsx";
import type { Group } from "./filter.ts";
import { STATISTICS } from "./texts.ts";

export type Report = Schemas["StatisticsDocument"];

export type Counts = Schemas["StatisticsCountsDocument"];

type Series = Schemas["StatisticsSeriesDocument"];

export const MEASURES = ["runs", "failures", "calls", "tokens", "cost"] as const;

export type Measure = (typeof MEASURES)[number];

/** Numbers of one name, one for each interval. */
export interface Curve {
  name: string;
  values: readonly number[];
  total: number;
}

/** Curves that a plot shows. The colors of more could not be told apart. */
const MAX_CURVES = 6;

/** Intervals that a plot shows, the most that the host returns. */
const MAX_INTERVALS = 1_500;

const STEP_MS: Readonly<Record<string, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** Returns the length of the intervals of a report. */
export function stepOf({ step }: Pick<Report, "step">): number {
  return STEP_MS[step] ?? 3_600_000;
}

/** Returns the starts of the intervals of a report, with those that have no counts. */
export function startsOf(report: Pick<Report, "step" | "from_ms" | "to_ms">): number[] {
  const step = stepOf(report);
  const count = Math.floor((report.to_ms - report.from_ms) / step) + 1;
  const length = Math.min(Math.max(count, 0), MAX_INTERVALS);
  return Array.from({ length }, (_, index) => report.from_ms + index * step);
}

function runsOf({ runs }: Counts): number {
  return runs.completed + runs.interrupted + runs.failed + runs.cancelled;
}

const AMOUNTS: Record<Measure, (counts: Counts) => number> = {
  runs: runsOf,
  failures: ({ runs }) => runs.failed,
  calls: ({ model_calls }) => model_calls,
  tokens: ({ input_tokens, output_tokens }) => input_tokens + output_tokens,
  cost: ({ cost }) => cost ?? 0,
};

/** The parts of a measure, which are the curves of a report that has one series. */
const PARTS: Record<Measure, readonly (readonly [name: string, of: (counts: Counts) => number])[]> =
  {
    runs: [
      [STATISTICS.curves.completed, ({ runs }) => runs.completed],
      [STATISTICS.curves.interrupted, ({ runs }) => runs.interrupted],
      [STATISTICS.curves.failed, ({ runs }) => runs.failed],
      [STATISTICS.curves.cancelled, ({ runs }) => runs.cancelled],
    ],
    failures: [[STATISTICS.curves.failed, AMOUNTS.failures]],
    calls: [
      [STATISTICS.curves.calls, AMOUNTS.calls],
      [STATISTICS.curves.failedCalls, ({ failed_model_calls }) => failed_model_calls],
    ],
    tokens: [
      [STATISTICS.curves.input, ({ input_tokens }) => input_tokens],
      [STATISTICS.curves.output, ({ output_tokens }) => output_tokens],
    ],
    cost: [[STATISTICS.curves.cost, AMOUNTS.cost]],
  };

/** Returns the measures that a report has. Runs have no model. */
export function measuresOf(by: Group | undefined): readonly Measure[] {
  if (by !== "model") return MEASURES;
  return MEASURES.filter((measure) => measure !== "runs" && measure !== "failures");
}

/** Returns the curves of a measure, without those that are zero. */
export function curvesOf(report: Report, by: Group | undefined, measure: Measure): Curve[] {
  const starts = startsOf(report);
  const { series } = report;
  if (by === undefined) {
    return PARTS[measure]
      .map(([name, of]) => sum(name, starts, series, of))
      .filter(({ total }) => total > 0);
  }
  const of = AMOUNTS[measure];
  const known = series.filter((one) => of(one.total) > 0);
  const named = known.filter(({ is_other }) => !is_other);
  named.sort((one, other) => of(other.total) - of(one.total));
  // A single curve of the rest would be no shorter than its only name.
  const isCut = named.length > MAX_CURVES || named.length < known.length;
  const shown = named.slice(0, isCut ? MAX_CURVES - 1 : MAX_CURVES);
  const rest = known.filter((one) => !shown.includes(one));
  return [
    ...shown.map((one) => sum(nameOf(one, by), starts, [one], of)),
    ...(rest.length > 0 ? [sum(STATISTICS.others, starts, rest, of)] : []),
  ];
}

function nameOf({ name }: Series, by: Group): string {
  return name == null ? STATISTICS.unnamed[by] : visible(name);
}

function sum(
  name: string,
  starts: readonly number[],
  series: readonly Series[],
  of: (counts: Counts) => number,
): Curve {
  const places = new Map(starts.map((start, index) => [start, index]));
  const values = starts.map(() => 0);
  let total = 0;
  for (const { points } of series) {
    for (const { start_ms, counts } of points) {
      const at = places.get(start_ms);
      if (at === undefined) continue;
      values[at] = (values[at] ?? 0) + of(counts);
      total += of(counts);
    }
  }
  return { name, values, total };
}

/** Returns the sum of a number of each series. */
export function totalOf(report: Report, of: (counts: Counts) => number): number {
  return report.series.reduce((total, one) => total + of(one.total), 0);
}
