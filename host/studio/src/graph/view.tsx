// A graph with the panel of its selected item.
import { Button } from "@wattle/page";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { Split } from "../part/split.tsx";
import { visible } from "../part/text.tsx";
import { toggled } from "../part/toggled.ts";
import type { TakenCases } from "../run/taken.ts";
import styles from "./graph.module.css";
import { type Box, layout, MOST_ITEMS, sizeOf, withScene } from "./layout.ts";
import { ItemPanel } from "./panel.tsx";
import { Picture } from "./picture.tsx";
import { pathOf, type Scene, structureOf } from "./scene.ts";
import { type FirstTasks, firstWith, type NodeStates } from "./states.ts";
import { NO_CASES, takenLines } from "./taken.ts";
import { PANEL, TEXTS } from "./texts.ts";

/** Which nodes are open, and what opens them. */
export interface Opening {
  open: ReadonlySet<string>;
  setOpen: (open: ReadonlySet<string>) => void;
}

/** Which of many parallel tasks have their graphs shown, and what chooses them. */
export interface Paging {
  first: FirstTasks;
  setFirst: (first: FirstTasks) => void;
}

export interface GraphViewProps {
  scene: Scene;
  states: NodeStates;
  /** The cases of branches that the run took. Absent without a run. */
  taken?: TakenCases;
  opening: Opening;
  /** Absent without a run. */
  paging?: Paging;
  /** The path of the selected item. */
  selected: string | undefined;
  onSelect: (path: string | undefined) => void;
  /** Returns the route to an event of the run. */
  routeOf?: (seq: number) => string;
  /** The tenant of the run, if the address named one. */
  tenant?: string | undefined;
}

export function GraphView(props: GraphViewProps) {
  const { scene, states, taken = NO_CASES, opening, paging, selected } = props;
  const { onSelect, routeOf, tenant } = props;
  const [zoom, setZoom] = useState(1);
  const frame = useRef<HTMLDivElement>(null);
  const structure = structureOf(scene);
  const isLarge = sizeOf(scene) > MOST_ITEMS;
  // The layout depends on the structure only. The run changes the rest of a scene.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  const placed = useMemo(
    () => (isLarge ? { width: 0, height: 0, boxes: [], paths: [] } : layout(scene)),
    [structure, isLarge],
  );
  const laid = withScene(placed, scene);
  const lines = takenLines(scene, taken);
  // The lines are drawn again only if the run took another one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  const takenKeys = useMemo(() => new Set(lines), [JSON.stringify(lines)]);
  const [first, ...others] = laid.boxes.filter((box) => pathOf(box.scene, box.item) === selected);
  const show = (key: string, index: number) =>
    paging?.setFirst(new Map(paging.first).set(key, firstWith(index)));
  const fit = () => {
    const { clientWidth: width = 0, clientHeight: height = 0 } = frame.current ?? {};
    const most = Math.min(width / laid.width, height / laid.height, 1);
    if (most > 0) setZoom(clamped(most));
  };
  return (
    <>
      <div className={styles.tools}>
        <Button onClick={() => setZoom(clamped(zoom / ZOOM_STEP))}>{TEXTS.zoomOut}</Button>
        <Button onClick={() => setZoom(clamped(zoom * ZOOM_STEP))}>{TEXTS.zoomIn}</Button>
        <Button onClick={fit}>{TEXTS.fit}</Button>
        <NestedTools boxes={laid.boxes} {...opening} />
      </div>
      {isLarge && <p>{TEXTS.tooLarge(MOST_ITEMS)}</p>}
      <Split
        label={first === undefined ? "" : titleOf(first)}
        panel={
          first && (
            <ItemPanel
              key={selected}
              boxes={[first, ...others]}
              states={states}
              taken={taken}
              onShow={show}
              routeOf={routeOf}
              tenant={tenant}
            />
          )
        }
        onClose={() => onSelect(undefined)}
      >
        <div ref={frame} className={styles.frame}>
          <Picture
            label={TEXTS.picture(visible(scene.graph.name))}
            laid={laid}
            states={states}
            taken={takenKeys}
            selected={selected}
            zoom={zoom}
            onSelect={(path) => onSelect(path === selected ? undefined : path)}
            onToggle={(path) => opening.setOpen(toggled(opening.open, path))}
            onShow={show}
          />
        </div>
      </Split>
    </>
  );
}

/** How much a step changes the size of a picture, and the sizes at most. */
const ZOOM_STEP = 1.25;
const LEAST_ZOOM = 0.3;
const MOST_ZOOM = 2;

function clamped(zoom: number): number {
  return Math.min(Math.max(zoom, LEAST_ZOOM), MOST_ZOOM);
}

function titleOf({ item: { kind, name } }: Box): string {
  return name === "" ? PANEL.kinds[kind] : visible(name);
}

/** Opens the nested graphs of all nodes that are shown, or closes all. */
function NestedTools({ boxes, open, setOpen }: Opening & { boxes: readonly Box[] }): ReactNode {
  const nested = boxes.filter(({ item }) => item.graph !== undefined);
  if (nested.length === 0) return null;
  const closed = nested.filter(({ inside }) => inside.length === 0);
  const paths = closed.map(({ scene, item }) => pathOf(scene, item));
  return (
    <>
      {closed.length > 0 && (
        <Button onClick={() => setOpen(new Set([...open, ...paths]))}>{TEXTS.openAll}</Button>
      )}
      {closed.length < nested.length && (
        <Button onClick={() => setOpen(new Set())}>{TEXTS.closeAll}</Button>
      )}
    </>
  );
}
