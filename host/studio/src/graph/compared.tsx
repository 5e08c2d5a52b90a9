// Two versions of a graph in one picture, with the list of their differences.
import { useMemo } from "react";
import { Text } from "../part/text.tsx";
import { type Mark, nestedVersions } from "./compare.ts";
import type { Graphs, Item, Line } from "./definition.ts";
import styles from "./graph.module.css";
import { MissingGraphs } from "./missing.tsx";
import { comparedScene, type Scene } from "./scene.ts";
import { NO_STATES } from "./states.ts";
import { LINES, labelOf, TEXTS } from "./texts.ts";
import { GraphView, type GraphViewProps } from "./view.tsx";

interface ComparedProps extends Pick<GraphViewProps, "opening" | "selected" | "onSelect"> {
  before: Graphs;
  after: Graphs;
}

export function Compared({ before, after, ...shared }: ComparedProps) {
  const { open } = shared.opening;
  const nested = useMemo(() => nestedVersions(before, after), [before, after]);
  const scene = useMemo(
    () => comparedScene([before.root, after.root], nested, open),
    [before, after, nested, open],
  );
  return (
    <>
      <MissingGraphs of={[before, after]} />
      <Differences scene={scene} isWhole={before.missing.size + after.missing.size === 0} />
      <GraphView scene={scene} states={NO_STATES} {...shared} />
    </>
  );
}

interface DifferencesProps {
  scene: Scene;
  /** True if no nested graph is missing. */
  isWhole: boolean;
}

/** The differences of a graph, and of the nested ones that are open. */
function Differences({ scene, isWhole }: DifferencesProps) {
  if (scene.comparison?.marks.size === 0) return isWhole ? <p>{TEXTS.same}</p> : null;
  return (
    <details className={styles.differences} open>
      <summary>{TEXTS.differences}</summary>
      <ul className={styles.list} aria-label={TEXTS.differences}>
        {withNested(scene).map((it) => (
          <Marked key={it.key} scene={it} />
        ))}
      </ul>
    </details>
  );
}

/** Returns a scene and those in its opened nodes. */
function withNested(scene: Scene): Scene[] {
  const nested = [...scene.inside.values()].flat();
  return [scene, ...nested.flatMap((inner) => withNested(inner.scene))];
}

/** The marked items and lines of a scene. Their names have those of the nodes around. */
function Marked({ scene: { path, comparison } }: { scene: Scene }) {
  if (comparison === undefined) return null;
  const { shape, items, lines } = comparison;
  const names = new Map(shape.items.map((item) => [item.id, labelOf(item)]));
  const named = (id: string) => names.get(id) ?? id;
  return (
    <>
      {items.map(([item, mark]) => (
        <MarkedItem key={item.id} path={path} item={item} mark={mark} />
      ))}
      {lines.map(([line, mark]) => (
        <MarkedLine key={JSON.stringify(line)} path={path} line={line} mark={mark} named={named} />
      ))}
    </>
  );
}

function MarkedItem({ path, item, mark }: { path: string; item: Item; mark: Mark }) {
  return (
    <li data-mark={mark}>
      {TEXTS.marks[mark]}: {item.kind} <Text>{path + item.name}</Text>
    </li>
  );
}

interface MarkedLineProps {
  path: string;
  line: Line;
  mark: Mark;
  named: (id: string) => string;
}

function MarkedLine({ path, line, mark, named }: MarkedLineProps) {
  return (
    <li data-mark={mark}>
      {TEXTS.marks[mark]}: {LINES[line.kind]}{" "}
      <Text>{TEXTS.line(path + named(line.from), named(line.to))}</Text>{" "}
      {line.label !== "" && <Text>{line.label}</Text>}
    </li>
  );
}
