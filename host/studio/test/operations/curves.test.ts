// What the plots of statistics show.
import { expect, test } from "vitest";
import {
  type Counts,
  curvesOf,
  measuresOf,
  type Report,
  startsOf,
} from "../../src/operations/curves.ts";
import { reachedIn } from "../../src/operations/limits.tsx";

const HOUR_MS = 3_600_000;

function countsOf(values: Partial<Omit<Counts, "runs">>, runs: Partial<Counts["runs"]>): Counts {
  return {
    runs: { completed: 0, interrupted: 0, failed: 0, cancelled: 0, ...runs },
    failures: {},
    limits: {},
    durations: [],
    model_calls: 0,
    failed_model_calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    unpriced_tokens: 0,
    ...values,
  };
}

/** A series with one interval, whose counts are those of all. */
function seriesOf(name: string | undefined, at: number, counts: Counts, is_other = false) {
  const points = [{ start_ms: at * HOUR_MS, counts }];
  return { ...(name === undefined ? {} : { name }), is_other, total: counts, points };
}

function reportOf(series: Report["series"]): Report {
  return { step: "hour", from_ms: 0, to_ms: 3 * HOUR_MS, series, is_complete: true };
}

test("intervals without counts are there, and are zero", () => {
  const counts = countsOf({ input_tokens: 30, output_tokens: 5 }, { completed: 2, failed: 1 });
  const report = reportOf([seriesOf(undefined, 2, counts)]);
  expect(startsOf(report)).toEqual([0, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]);
  expect(curvesOf(report, undefined, "runs")).toEqual([
    { name: "Completed", values: [0, 0, 2, 0], total: 2 },
    { name: "Failed", values: [0, 0, 1, 0], total: 1 },
  ]);
  expect(curvesOf(report, undefined, "tokens").map(({ name, total }) => [name, total])).toEqual([
    ["Input", 30],
    ["Output", 5],
  ]);
  expect(curvesOf(report, undefined, "cost")).toEqual([]);
});

test("a report with a time that is not plausible has a bounded number of intervals", () => {
  expect(startsOf({ step: "minute", from_ms: 0, to_ms: 1e15 })).toHaveLength(1_500);
  expect(startsOf({ step: "minute", from_ms: 5, to_ms: -1e15 })).toEqual([]);
  expect(startsOf({ step: "decade", from_ms: 0, to_ms: HOUR_MS })).toEqual([0, HOUR_MS]);
});

test("the largest names have a curve each, and the rest has one", () => {
  const runs = (count: number) => countsOf({ cost: count / 2 }, { completed: count });
  const names = ["a", "b", "c", "d", "e", "f", "g\u202e"];
  const series = names.map((name, at) => seriesOf(name, 1, runs(at + 1)));
  const curves = (count: number) =>
    curvesOf(reportOf(series.slice(0, count)), "app", "runs").map(({ name, total }) => [
      name,
      total,
    ]);
  expect(curves(2)).toEqual([
    ["b", 2],
    ["a", 1],
  ]);
  expect(curves(6)).toHaveLength(6);
  expect(curves(7)).toEqual([
    ["g[U+202E]", 7],
    ["f", 6],
    ["e", 5],
    ["d", 4],
    ["c", 3],
    ["Others", 3],
  ]);
});

test("what the host adds up is among the others, and what has no name is called so", () => {
  const calls = (count: number) => countsOf({ model_calls: count }, {});
  const series = [
    seriesOf(undefined, 0, calls(9), true),
    seriesOf(undefined, 0, calls(2)),
    seriesOf("quiet", 0, calls(0)),
  ];
  const curves = curvesOf(reportOf(series), "tenant", "calls");
  expect(curves.map(({ name, total }) => [name, total])).toEqual([
    ["Without a tenant", 2],
    ["Others", 9],
  ]);
  expect(measuresOf("model")).toEqual(["calls", "tokens", "cost"]);
});

test("limits are listed by app, the most reached ones first", () => {
  const counts = (limits: Record<string, number>) => countsOf({ limits }, {});
  const report = reportOf([
    seriesOf("notes", 0, counts({ cpu: 1, memory: 4 })),
    seriesOf(undefined, 0, counts({ cpu: 2 }), true),
  ]);
  expect(reachedIn(report, "limits")).toEqual([
    { name: "memory", app: "notes", runs: 4 },
    { name: "cpu", app: undefined, runs: 2 },
    { name: "cpu", app: "notes", runs: 1 },
  ]);
});
