// The picture of a graph: its lines as SVG, and above them its items as buttons.
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import { Text, visible } from "../part/text.tsx";
import type { NodeState } from "../run/node-states.ts";
import type { RowStatus } from "../run/row.ts";
import { useKeyHint } from "../shell/keys.tsx";
import type { Mark } from "./compare.ts";
import styles from "./graph.module.css";
import { type Box, type Laid, type Path, type Point, shownOf } from "./layout.ts";
import { neighbor } from "./move.ts";
import { pathOf } from "./scene.ts";
import { type NodeStates, type ShownTasks, stateOf, stateText } from "./states.ts";
import { labelOf, TEXTS } from "./texts.ts";

export interface PictureProps {
  label: string;
  laid: Laid;
  states: NodeStates;
  /** Keys of the lines that the run took at branches. */
  taken: ReadonlySet<string>;
  /** The path of the selected item. */
  selected: string | undefined;
  zoom: number;
  onSelect: (path: string) => void;
  /** Opens or closes a node. */
  onToggle: (path: string) => void;
  /** Shows the graph of a parallel task in the opened node whose box has the key. */
  onShow: (key: string, index: number) => void;
}

/** Key that opens and closes the graph of a node. */
const TOGGLE_KEY = "o";

/** Keys that show the graphs of other parallel tasks. */
const PREVIOUS_KEY = "p";
const NEXT_KEY = "n";

/** Tasks of a node that have a mark each. */
const MOST_TASKS = 12;

export function Picture(props: PictureProps) {
  const { label, laid, states, taken, selected, zoom, onSelect, onToggle, onShow } = props;
  const [focused, setFocused] = useState<string>();
  const area = useRef<HTMLDivElement>(null);
  useKeyHint("↑ ↓ ← →", TEXTS.keys);
  useKeyHint("Enter", TEXTS.keySelect);
  useKeyHint(TOGGLE_KEY, TEXTS.keyOpen);
  useKeyHint(PREVIOUS_KEY, TEXTS.keyPrevious);
  useKeyHint(NEXT_KEY, TEXTS.keyNext);
  useEffect(() => {
    if (focused !== undefined) buttonOf(area.current, focused)?.focus();
  }, [focused]);
  const reached = laid.boxes.find(({ key }) => key === focused) ?? laid.boxes[0];
  const onKey = (event: KeyboardEvent, box: Box) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = neighbor(laid.boxes, box, event.key);
    const isToggle = event.key === TOGGLE_KEY && box.item.graph !== undefined;
    const task = taskAt(event.key, shownOf(box, stateOf(states, box.scene.place, box.item)));
    if (next !== undefined) setFocused(next.key);
    else if (task !== undefined) onShow(box.key, task);
    else if (isToggle) onToggle(pathOf(box.scene, box.item));
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a picture, not a set of fields.
    <div className={styles.picture} role="group" aria-label={label}>
      <div
        ref={area}
        className={styles.area}
        style={{ width: laid.width, height: laid.height, zoom }}
      >
        <Lines paths={laid.paths} taken={taken} width={laid.width} height={laid.height} />
        {laid.boxes.map((box) => {
          const path = pathOf(box.scene, box.item);
          return (
            <ItemBox
              key={box.key}
              box={box}
              state={stateOf(states, box.scene.place, box.item)}
              mark={box.scene.comparison?.marks.get(box.item.id)}
              isSelected={path === selected}
              isReached={box === reached}
              onKey={onKey}
              onFocus={() => setFocused(box.key)}
              onSelect={() => onSelect(path)}
              onToggle={() => onToggle(path)}
              onShow={(index) => onShow(box.key, index)}
            />
          );
        })}
      </div>
    </div>
  );
}

/** Returns the task that a key shows; `undefined` for any other key, and if there is none. */
function taskAt(key: string, shown: ShownTasks | undefined): number | undefined {
  if (key === PREVIOUS_KEY) return shown?.previous;
  return key === NEXT_KEY ? shown?.next : undefined;
}

/** Returns the button of a box. A key may have any character, so it is not part of a selector. */
function buttonOf(area: HTMLElement | null, key: string): HTMLElement | undefined {
  const buttons = area?.querySelectorAll<HTMLElement>("button[data-key]") ?? [];
  return [...buttons].find(({ dataset }) => dataset.key === key);
}

interface LinesProps {
  paths: readonly Path[];
  taken: ReadonlySet<string>;
  width: number;
  height: number;
}

/** The lines, which change only with the layout and with what the run takes. */
const Lines = memo(function Lines({ paths, taken, width, height }: LinesProps) {
  return (
    <>
      <svg className={styles.lines} width={width} height={height} aria-hidden="true">
        {paths.map(({ key, line, mark, points }) => (
          <g key={key} data-kind={line.kind} data-mark={mark} data-taken={taken.has(key)}>
            <path d={curve(points)} />
            <polygon points={arrow(points)} />
          </g>
        ))}
      </svg>
      {paths.map(
        ({ key, line, label }) =>
          label !== undefined && (
            <span
              key={key}
              className={styles.label}
              data-taken={taken.has(key)}
              style={{ left: label.x, top: label.y, width: label.width, height: label.height }}
              title={visible(line.label)}
            >
              <Text>{line.label}</Text>
            </span>
          ),
      )}
    </>
  );
});

/** Returns a line through points, whose corners are round. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  const parts = rest.map((point, index) => {
    const next = rest[index + 1];
    if (next === undefined) return `L${text(point)}`;
    return `Q${text(point)} ${text({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`;
  });
  return `M${text(first)} ${parts.join(" ")}`;
}

function text({ x, y }: Point): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}

/** Length and half of the width of an arrow's head, in pixels. */
const HEAD = { length: 9, half: 4 };

/** Returns the corners of the head of an arrow along points. */
function arrow(points: readonly Point[]): string {
  const [from, to] = points.slice(-2);
  if (from === undefined || to === undefined) return "";
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const base = { x: to.x - x * HEAD.length, y: to.y - y * HEAD.length };
  const left = { x: base.x - y * HEAD.half, y: base.y + x * HEAD.half };
  const right = { x: base.x + y * HEAD.half, y: base.y - x * HEAD.half };
  return [to, left, right].map(text).join(" ");
}

interface ItemBoxProps {
  box: Box;
  state: NodeState | undefined;
  mark: Mark | undefined;
  isSelected: boolean;
  /** True for the item that the tabulator key leads to. */
  isReached: boolean;
  onKey: (event: KeyboardEvent, box: Box) => void;
  onFocus: () => void;
  onSelect: () => void;
  onToggle: () => void;
  onShow: (index: number) => void;
}

function ItemBox({ box, state, mark, isSelected, isReached, ...on }: ItemBoxProps) {
  const { item, inside, x, y, width, height } = box;
  const isOpen = inside.length > 0;
  const shown = shownOf(box, state);
  return (
    <div
      className={styles.box}
      style={{ left: x, top: y, width, height }}
      data-kind={item.kind}
      data-node={item.id}
      data-status={state?.status}
      data-mark={mark}
      data-open={isOpen}
    >
      <button
        type="button"
        className={styles.item}
        data-key={box.key}
        tabIndex={isReached ? 0 : -1}
        aria-pressed={isSelected}
        onKeyDown={(event) => on.onKey(event, box)}
        onFocus={on.onFocus}
        onClick={on.onSelect}
      >
        <span className={styles.name}>
          <Text>{labelOf(item)}</Text>
        </span>
        <Note box={box} state={state} mark={mark} />
      </button>
      {shown !== undefined && <Pager node={item.name} shown={shown} onShow={on.onShow} />}
      {item.graph !== undefined && (
        <button
          type="button"
          className={styles.toggle}
          tabIndex={-1}
          aria-expanded={isOpen}
          aria-label={(isOpen ? TEXTS.close : TEXTS.open)(visible(item.name))}
          onClick={on.onToggle}
        >
          {isOpen ? "−" : "+"}
        </button>
      )}
    </div>
  );
}

interface PagerProps {
  node: string;
  shown: ShownTasks;
  onShow: (index: number) => void;
}

/** Buttons that show the graphs of other parallel tasks. Keys of the node do the same. */
function Pager({ node, shown: { previous, next }, onShow }: PagerProps) {
  const ways = [
    ["‹", TEXTS.previous, previous],
    ["›", TEXTS.next, next],
  ] as const;
  return (
    <span className={styles.pager}>
      {ways.map(([sign, labeled, index]) => (
        <button
          key={sign}
          type="button"
          tabIndex={-1}
          aria-label={labeled(visible(node))}
          disabled={index === undefined}
          onClick={() => index !== undefined && onShow(index)}
        >
          {sign}
        </button>
      ))}
    </span>
  );
}

/** What an item says besides its name: its difference, the state of its tasks, or what it is. */
function Note({ box, state, mark }: Pick<ItemBoxProps, "box" | "state" | "mark">) {
  const { item, scene } = box;
  if (mark !== undefined) return <span className={styles.note}>{TEXTS.marks[mark]}</span>;
  if (item.kind !== "node" && item.kind !== "subgraph") return null;
  if (state !== undefined) {
    const shown = shownOf(box, state);
    return (
      <>
        <span className={styles.note}>
          {stateText(state)}
          {shown !== undefined && ` · ${TEXTS.shown(shown.first + 1, shown.last + 1)}`}
        </span>
        {state.newest.length > 1 && <Tasks statuses={state.newest.map(({ status }) => status)} />}
      </>
    );
  }
  const { plugin, subgraph } = scene.graph.nodes[item.id] ?? {};
  return (
    <span className={styles.note}>
      <Text>{subgraph ?? plugin ?? ""}</Text>
    </span>
  );
}

/** Tasks that run at once, side by side. */
function Tasks({ statuses }: { statuses: readonly RowStatus[] }) {
  return (
    <span className={styles.tasks} aria-hidden="true">
      {statuses.slice(0, MOST_TASKS).map((status, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the tasks of a superstep keep their order.
        <span key={index} data-status={status} />
      ))}
    </span>
  );
}
