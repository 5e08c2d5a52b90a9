// What is known of an item of a graph: what it runs, its schemas or conditions, and its tasks.
import { Button } from "@wattle/page";
import { type ReactNode, useMemo, useState } from "react";
import { digestText } from "../part/digest.ts";
import { Disclosure } from "../part/disclosure.tsx";
import { Facts, textFact } from "../part/facts.tsx";
import { diffOf } from "../part/json-diff/diff.ts";
import { JsonDiff } from "../part/json-diff/json-diff.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { graphRoute, playRoute, RouteLink } from "../router/links.tsx";
import type { TaskState } from "../run/node-states.ts";
import type { RowStatus } from "../run/row.ts";
import type { TakenCases } from "../run/taken.ts";
import { aspectsOf, otherCode } from "./compare.ts";
import {
  casesOf,
  channelsOf,
  contextSchemaOf,
  docOf,
  type GraphDocument,
  type Item,
} from "./definition.ts";
import styles from "./graph.module.css";
import { type Box, shownOf } from "./layout.ts";
import { graphOf, type Scene } from "./scene.ts";
import { type NodeStates, stateOf } from "./states.ts";
import { takenIn } from "./taken.ts";
import { PANEL, TEXTS } from "./texts.ts";

interface ItemPanelProps {
  /** The boxes of the item: several if graphs of parallel tasks are open. */
  boxes: readonly [Box, ...Box[]];
  states: NodeStates;
  /** The cases of branches that the run took. */
  taken: TakenCases;
  /** Shows the graph of a parallel task in the opened node whose box has the key. */
  onShow: (key: string, index: number) => void;
  /** Returns the route to an event of the run. */
  routeOf: ((seq: number) => string) | undefined;
  /** The tenant of the run, if the address named one. */
  tenant: string | undefined;
}

export function ItemPanel({ boxes, states, taken, onShow, routeOf, tenant }: ItemPanelProps) {
  const [{ item, scene }] = boxes;
  const graph = graphOf(scene, item);
  const node = graph.nodes[item.id];
  const doc = item.kind === "start" ? docOf(graph.definition) : (node?.doc ?? "");
  const tasks = boxes.flatMap((box) => tasksOf(box, states, onShow));
  const cases = takenIn(boxes, taken);
  const noteOf = (index: number) => {
    const found = cases.get(index);
    if (found === undefined || routeOf === undefined) return null;
    return <RouteLink to={routeOf(found.seq)}>{PANEL.taken(found.count)}</RouteLink>;
  };
  return (
    <>
      {doc !== "" && (
        <p>
          <Text>{doc}</Text>
        </p>
      )}
      <Facts
        facts={[
          [PANEL.kind, PANEL.kinds[item.kind]],
          [PANEL.plugin, textFact(node?.plugin)],
          [PANEL.function, textFact(node?.function)],
          [PANEL.graph, item.graph && <GraphLink app={graph.app} graph={item.graph} />],
        ]}
      />
      {scene.graph.nodes[item.id] !== undefined && (
        <p>
          <RouteLink to={playRoute(graph.app, { graph: graph.name, node: item.id, tenant })}>
            {TEXTS.try}
          </RouteLink>
        </p>
      )}
      <Tasks tasks={tasks} routeOf={routeOf} />
      <Changes scene={scene} item={item} />
      <Documents graph={graph} item={item} titled={same} noteOf={noteOf} />
      <Older scene={scene} item={item} />
    </>
  );
}

/** What differs in a changed item from the version before. */
function Changes({ scene, item }: { scene: Scene; item: Item }) {
  const { comparison, graph } = scene;
  const before = changedFrom(scene, item);
  const code = comparison && before && otherCode(comparison.before, graph, item);
  const diff = useMemo(
    () =>
      comparison && before && diffOf(aspectsOf(comparison.before, before), aspectsOf(graph, item)),
    [comparison, before, graph, item],
  );
  if (diff === undefined) return null;
  return (
    <Section title={PANEL.changes}>
      {code !== undefined && <p>{PANEL.code(digestText(code[0]), digestText(code[1]))}</p>}
      {comparison?.inside.has(item.id) && <p>{PANEL.inside}</p>}
      {diff.changes.length > 0 && <JsonDiff label={PANEL.changes} diff={diff} />}
    </Section>
  );
}

/** The documents of a changed item in the version before. Other code changes none of them. */
function Older({ scene, item }: { scene: Scene; item: Item }) {
  const [isOpen, setOpen] = useState(false);
  const before = changedFrom(scene, item);
  if (scene.comparison?.marks.get(item.id) === "code") return null;
  if (scene.comparison === undefined || before === undefined) return null;
  return (
    <Disclosure name={PANEL.older} isOpen={isOpen} onToggle={setOpen}>
      <Documents graph={scene.comparison.before} item={before} titled={PANEL.before} />
    </Disclosure>
  );
}

/** Returns a changed item in the version before; `undefined` for any other item. */
function changedFrom({ comparison }: Scene, { id }: Item): Item | undefined {
  const mark = comparison?.marks.get(id);
  return mark === "changed" || mark === "code" ? comparison?.old.get(id) : undefined;
}

interface DocumentsProps {
  graph: GraphDocument;
  item: Item;
  /** Returns the title of a document in this version. */
  titled: (title: string) => string;
  /** Returns what is said of a case of a branch, by its index. */
  noteOf?: (index: number) => ReactNode;
}

const same = (title: string) => title;

/** The conditions, channels and schemas of an item. */
function Documents({ graph, item, titled, noteOf }: DocumentsProps) {
  const node = graph.nodes[item.id];
  return (
    <>
      {item.kind === "branch" && <Cases item={item} title={titled(PANEL.cases)} noteOf={noteOf} />}
      {item.kind === "start" && <Channels definition={graph.definition} titled={titled} />}
      <Document title={titled(PANEL.input)} value={node?.input_schema} />
      <Document title={titled(PANEL.output)} value={node?.output_schema} />
      {item.kind !== "start" && <Document title={titled(PANEL.settings)} value={item.part} />}
    </>
  );
}

function GraphLink({ app, graph }: { app: string; graph: string }) {
  return (
    <RouteLink to={graphRoute(app, graph)}>
      <Text>{graph}</Text>
    </RouteLink>
  );
}

function Document({ title, value }: { title: string; value: unknown }) {
  if (value === undefined || value === null) return null;
  return (
    <Section title={title}>
      <JsonTree label={title} value={value} />
    </Section>
  );
}

/** A task of the list. */
interface ListedTask extends TaskState {
  /** Shows the graph of the task; absent if its node shows all graphs or none. */
  show: (() => void) | undefined;
  isShown: boolean;
}

function tasksOf(
  box: Box,
  states: NodeStates,
  onShow: ItemPanelProps["onShow"],
): readonly ListedTask[] {
  const state = stateOf(states, box.scene.place, box.item);
  const shown = shownOf(box, state);
  return (state?.newest ?? []).map((task, index) => ({
    ...task,
    show: shown && (() => onShow(box.key, index)),
    isShown: shown !== undefined && shown.first <= index && index <= shown.last,
  }));
}

/** States whose tasks are listed first, in this order. Others keep theirs while the run goes on. */
const FIRST: readonly RowStatus[] = ["failed", "lost", "asked"];

function rankOf({ status }: TaskState): number {
  const rank = FIRST.indexOf(status);
  return rank === -1 ? FIRST.length : rank;
}

/** Tasks that the panel lists at first, and with each further step. */
const TASKS_STEP = 100;

/** The tasks of the newest superstep, with links to the timeline. */
function Tasks({
  tasks,
  routeOf,
}: { tasks: readonly ListedTask[] } & Pick<ItemPanelProps, "routeOf">) {
  const [most, setMost] = useState(TASKS_STEP);
  if (tasks.length === 0 || routeOf === undefined) return null;
  const sorted = [...tasks].sort((a, b) => rankOf(a) - rankOf(b));
  const hidden = tasks.length - most;
  return (
    <Section title={PANEL.tasks}>
      <ul className={styles.list}>
        {sorted.slice(0, most).map(({ task, status, seq, show, isShown }) => (
          <li key={task}>
            <RouteLink to={routeOf(seq)}>
              <Text>{task}</Text>
            </RouteLink>{" "}
            <Status name={status} />{" "}
            {show !== undefined && (
              <Button
                aria-label={PANEL.showTaskOf(visible(task))}
                aria-pressed={isShown}
                onClick={show}
              >
                {PANEL.showTask}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <Button onClick={() => setMost(most + TASKS_STEP)}>{TEXTS.more(hidden)}</Button>
      )}
    </Section>
  );
}

interface CasesProps {
  item: Item;
  title: string;
  noteOf: ((index: number) => ReactNode) | undefined;
}

function Cases({ item, title, noteOf }: CasesProps) {
  return (
    <Section title={title}>
      <ol className={styles.list}>
        {casesOf(item).map(({ when, to }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the order of the cases is their meaning.
          <li key={index}>
            <code className={styles.code}>
              <Text>{when === "" ? TEXTS.otherwise : when}</Text>
            </code>{" "}
            → <Text>{to.join(", ")}</Text> {noteOf?.(index)}
          </li>
        ))}
      </ol>
    </Section>
  );
}

interface ChannelsProps extends Pick<DocumentsProps, "titled"> {
  definition: unknown;
}

function Channels({ definition, titled }: ChannelsProps) {
  return (
    <>
      <Section title={titled(PANEL.channels)}>
        <ul className={styles.list}>
          {channelsOf(definition).map(({ name, doc, reducer, schema }) => (
            <li key={name}>
              <strong>
                <Text>{name}</Text>
              </strong>{" "}
              {reducer !== undefined && <Text>{PANEL.reducer(reducerName(reducer))}</Text>}
              <div>
                <Text>{doc}</Text>
              </div>
              {schema !== undefined && <JsonTree label={titled(name)} value={schema} />}
            </li>
          ))}
        </ul>
      </Section>
      <Document title={titled(PANEL.context)} value={contextSchemaOf(definition)} />
    </>
  );
}

function reducerName(reducer: unknown): string {
  return typeof reducer === "string" ? reducer : JSON.stringify(reducer);
}
