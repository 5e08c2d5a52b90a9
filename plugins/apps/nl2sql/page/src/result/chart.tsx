// The plot of a result that suits one, with its numbers as text.
import { ErrorBoundary, later } from "@wattle/page";
import { Suspense, useMemo } from "react";
import styles from "../page.module.css";
import type { NaturalPlot } from "./natural.ts";
import { described } from "./natural.ts";

const Plot = later(() => import("@wattle/page/plot"));

/** Maximum number of characters of a name below its bar. The table has the whole name. */
const NAME_CHARACTERS = 12;

function short(name: string): string {
  const characters = [...name];
  if (characters.length <= NAME_CHARACTERS) return name;
  return `${characters.slice(0, NAME_CHARACTERS - 1).join("")}…`;
}

export function Chart({ plot }: { plot: NaturalPlot }) {
  const words = described(plot);
  // The plot is drawn again for another object.
  const x = useMemo(
    () => ("names" in plot.x ? { names: plot.x.names.map(short) } : plot.x),
    [plot],
  );
  return (
    <figure className={styles.chart}>
      <ErrorBoundary fallback={null}>
        <Suspense fallback={<div className={styles.chartPlace} />}>
          <Plot label={words} x={x} series={plot.series} />
        </Suspense>
      </ErrorBoundary>
      <figcaption className="w-note">{words}</figcaption>
    </figure>
  );
}
