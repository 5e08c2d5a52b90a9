// Numbers over time or by category. Load it after the first view:
// `later(() => import("@wattle/page/plot"))`.
//
// A plot is an image for screen readers: it has a name, and the page also shows the numbers in a
// table.
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { texts } from "../language/language.ts";
import { barRange } from "./range.ts";
import "./plot.css";

export interface Series {
  name: string;
  values: readonly (number | null)[];
}

interface PlotProps {
  /** The content of the plot, as one sentence. */
  label: string;
  /** Times make lines, and names make bars. */
  x: { time: readonly Date[] } | { names: readonly string[] };
  series: readonly Series[];
}

const HEIGHT_PX = 260;

const COLORS = [
  ["#1459c7", "#79adff"],
  ["#b3541e", "#ffb27a"],
  ["#1b6e3c", "#7bd79d"],
  ["#7a1fa2", "#d7a8ff"],
  ["#8a5a00", "#f5c66b"],
  ["#0f6f7c", "#7fd6e2"],
] as const;

/** Share of its space that a bar takes, and its maximum width in pixels. */
const BAR_PART = 0.6;
const BAR_PX = 64;

/** Formats a value for the axis. */
function numbers(value: number): string {
  return value.toLocaleString(texts().locale, { maximumFractionDigits: 2 });
}

/** Lines over time or bars by name, as wide as the available space. */
export function Plot({ label, x, series }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = () => {
      const width = Math.max(element.clientWidth, 120);
      return new UPlot(options(element, x, series, width), data(x, series), element);
    };
    let plot = draw();
    const again = () => {
      plot.destroy();
      plot = draw();
    };
    // Colors are read when a plot is drawn.
    const themes = matchMedia("(prefers-color-scheme: dark)");
    themes.addEventListener("change", again);
    const chosen = new MutationObserver(again);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    resized.observe(element);
    return () => {
      themes.removeEventListener("change", again);
      chosen.disconnect();
      resized.disconnect();
      plot.destroy();
    };
  }, [x, series]);
  return <div ref={place} className="w-plot" role="img" aria-label={label} />;
}

export default Plot;

function data(x: PlotProps["x"], series: readonly Series[]): UPlot.AlignedData {
  const places =
    "time" in x ? x.time.map((time) => time.getTime() / 1_000) : x.names.map((_, at) => at);
  return [places, ...series.map(({ values }) => [...values])];
}

function options(
  element: HTMLElement,
  x: PlotProps["x"],
  series: readonly Series[],
  width: number,
): UPlot.Options {
  const style = getComputedStyle(element);
  const text = style.color;
  const line = style.borderTopColor;
  const isDark = isDarkNow();
  const font = `12px ${style.fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  const names = "names" in x ? x.names : undefined;
  return {
    width,
    height: HEIGHT_PX,
    scales: names ? nameScales(names) : { x: { time: true } },
    axes: [
      names ? { ...axis, ...nameAxis(names) } : axis,
      { ...axis, size: 64, values: (_, splits) => splits.map(numbers) },
    ],
    series: [{ label: "" }, ...series.map((one, at) => look(one, at, isDark, names !== undefined))],
    legend: { show: series.length > 1, live: false },
    cursor: { drag: { x: false, y: false } },
  };
}

/** Bars begin at zero, because their lengths are compared. */
function nameScales(names: readonly string[]): UPlot.Scales {
  return {
    x: { time: false, range: [-0.5, names.length - 0.5] },
    y: { range: (_, low, high) => barRange(low ?? 0, high ?? 0) },
  };
}

function nameAxis(names: readonly string[]): UPlot.Axis {
  return {
    splits: () => names.map((_, at) => at),
    values: (_, splits) => splits.map((at) => names[at] ?? ""),
    // Many names do not fit next to each other.
    rotate: names.length > 6 ? -40 : 0,
    size: names.length > 6 ? 90 : 40,
  };
}

function look(series: Series, at: number, isDark: boolean, isBar: boolean): UPlot.Series {
  const color = COLORS[at % COLORS.length]?.[isDark ? 1 : 0] ?? "currentColor";
  const line = { label: series.name, stroke: color, width: 2 };
  if (!isBar || UPlot.paths.bars === undefined) return line;
  return {
    ...line,
    fill: color,
    paths: UPlot.paths.bars({ size: [BAR_PART, BAR_PX] }),
    points: { show: false },
  };
}

function isDarkNow(): boolean {
  const { theme } = document.documentElement.dataset;
  if (theme !== undefined) return theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
