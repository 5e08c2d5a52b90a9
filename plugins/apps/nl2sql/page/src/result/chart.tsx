// The plot of a result that has a natural one, with its numbers in words.
import { later } from "@wattle/page";
import { Suspense, useMemo } from "react";
import type { NaturalPlot } from "./natural.ts";
import { described } from "./natural.ts";
import { Otherwise } from "./statement.tsx";

const Plot = later(() => import("@wattle/page/plot"));

/** Characters of a name below its bar; the table has all. */
const NAME_CHARACTERS = 12;

function short(name: string): string {
  const characters = [...name];
  if (characters.length <= NAME_CHARACTERS) return name;
  return `${characters.slice(0, NAME_CHARACTERS - 1).join("")}…`;
}

export function Chart({ plot }: { plot: NaturalPlot }) {
  const words = described(plot);
  // The plot draws itself anew for another object.
  const x = useMemo(
    () => ("names" in plot.x ? { names: plot.x.names.map(short) } : plot.x),
    [plot],
  );
  return (
    <figure className="chart">
      <Otherwise show={null}>
        <Suspense fallback={<div className="chart-place" />}>
          <Plot label={words} x={x} series={plot.series} />
        </Suspense>
      </Otherwise>
      <figcaption className="w-note">{words}</figcaption>
    </figure>
  );
}
