// Selects the plot of a result: numbers over time, or numbers by one category.
import type { Row } from "../chat/types.ts";
import { columnsOf, isNumeric, numberOf, textOf } from "./value.ts";

export interface NaturalPlot {
  kind: "time" | "category";
  /** The column of the horizontal axis. */
  by: string;
  x: { time: Date[] } | { names: string[] };
  series: { name: string; values: (number | null)[] }[];
}

/** Maximum number of bars. More cannot be read. */
const MOST_CATEGORIES = 40;

/** Maximum number of lines. More cannot be distinguished. */
const MOST_SERIES = 4;

/** A metric that is smaller by this factor would be on the axis. */
const VISIBLE_PART = 50;

/** Columns whose numbers are names and not quantities. */
const NAMING = /(^|_)(id|no|code|year|month|day|hour|week|quarter)$|编号|^年份?$|^月份?$/i;

const YEAR_NAME = /(^|_)year$|^年份?$/i;
const TIME = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?\S*)?$/;
const FIRST_YEAR = 1900;
const LAST_YEAR = 2100;

/** Returns the plot of a result; `undefined` if a table is sufficient. */
export function naturalPlot(rows: readonly Row[]): NaturalPlot | undefined {
  if (rows.length < 2) return undefined;
  const columns = columnsOf(rows);
  const figures = columns.filter((name) => isNumeric(rows, name) && !NAMING.test(name));
  const others = columns.filter((name) => !figures.includes(name));
  const [by] = others;
  if (by === undefined || others.length !== 1 || figures.length === 0) return undefined;
  const texts = rows.map((row) => textOf(row[by]));
  if (new Set(texts).size !== texts.length || texts.includes("")) return undefined;
  const times = timesOf(by, texts);
  if (times !== undefined) {
    const order = times.map((_, at) => at).sort((a, b) => Number(times[a]) - Number(times[b]));
    const time = order.map((at) => times[at] as Date);
    return { kind: "time", by, x: { time }, series: series(rows, figures, order) };
  }
  if (texts.length > MOST_CATEGORIES || isNumeric(rows, by)) return undefined;
  const order = texts.map((_, at) => at);
  return { kind: "category", by, x: { names: texts }, series: series(rows, figures, order) };
}

/**
 * Returns the times of a column, if all its texts are times. A column of years needs the name of
 * one.
 */
function timesOf(name: string, texts: readonly string[]): Date[] | undefined {
  const times = texts.map(timeOf);
  const areYears = texts.every((text) => /^\d{4}$/.test(text));
  if (areYears && !YEAR_NAME.test(name)) return undefined;
  return times.every((time) => time !== undefined) ? (times as Date[]) : undefined;
}

function timeOf(text: string): Date | undefined {
  const found = TIME.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = found
    .slice(1)
    .map((part) => (part === undefined ? undefined : Number(part)));
  if (year < FIRST_YEAR || year > LAST_YEAR || month < 1 || month > 12 || day < 1 || day > 31) {
    return undefined;
  }
  return new Date(year, month - 1, day, hour, minute, second);
}

function series(rows: readonly Row[], figures: readonly string[], order: readonly number[]) {
  const all = figures.map((name) => ({
    name,
    values: order.map((at) => numberOf(rows[at]?.[name]) ?? null),
  }));
  const height = (values: readonly (number | null)[]) =>
    Math.max(...values.map((value) => Math.abs(value ?? 0)));
  const highest = Math.max(...all.map(({ values }) => height(values)));
  const visible = all.filter(({ values }) => height(values) * VISIBLE_PART >= highest);
  return visible.slice(0, MOST_SERIES);
}

/** Describes the plot as text, for users who do not see it. */
export function described({ kind, by, x, series }: NaturalPlot): string {
  // Swedish dates have the form of ISO 8601, in the time zone of the user.
  const names = "time" in x ? x.time.map((time) => time.toLocaleDateString("sv-SE")) : x.names;
  const parts = series.map(({ name, values }) => {
    const known = values.flatMap((value, at) => (value === null ? [] : [{ value, at }]));
    const sorted = known.toSorted((a, b) => a.value - b.value);
    const [low, high] = [sorted[0], sorted.at(-1)];
    if (low === undefined || high === undefined) return `${name} 没有数值`;
    const shown = (it: { value: number; at: number }) =>
      `${it.value.toLocaleString("zh-CN", { maximumFractionDigits: 2 })}（${names[it.at]}）`;
    return `${name} 最低 ${shown(low)}，最高 ${shown(high)}`;
  });
  const what = kind === "time" ? "折线图" : "柱状图";
  return `${what}：按 ${by} 的 ${names.length} 个数据点；${parts.join("；")}`;
}
