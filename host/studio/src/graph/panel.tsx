// What is known of an item of a graph: what it runs, its schemas or conditions, and its tasks.
import { Facts, textFact } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { graphRoute, playRoute, RouteLink } from "../router/links.tsx";
import type { TaskState } from "../run/timeline.ts";
import { casesOf, channelsOf, contextSchemaOf, docOf, type Item } from "./definition.ts";
import styles from "./graph.module.css";
import type { Box } from "./layout.ts";
import { graphOf } from "./scene.ts";
import { type NodeStates, stateOf } from "./states.ts";
import { PANEL, TEXTS } from "./texts.ts";

interface ItemPanelProps {
  /** The boxes of the item: several if graphs of parallel tasks are open. */
  boxes: readonly [Box, ...Box[]];
  states: NodeStates;
  /** Returns the route to an event of the run. */
  routeOf: ((seq: number) => string) | undefined;
  /** The tenant of the run, if the address named one. */
  tenant: string | undefined;
}

export function ItemPanel({ boxes, states, routeOf, tenant }: ItemPanelProps) {
  const [{ item, scene }] = boxes;
  const graph = graphOf(scene, item);
  const before = scene.comparison?.old.get(item.id);
  const node = graph.nodes[item.id];
  const doc = item.kind === "start" ? docOf(graph.definition) : (node?.doc ?? "");
  const tasks = boxes.flatMap((box) => stateOf(states, box.scene.place, item)?.newest ?? []);
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
      {node != null && (
        <p>
          <RouteLink to={playRoute(graph.app, { graph: graph.name, node: item.id, tenant })}>
            {TEXTS.try}
          </RouteLink>
        </p>
      )}
      <Tasks tasks={tasks} routeOf={routeOf} />
      {item.kind === "branch" && <Cases item={item} />}
      {item.kind === "start" && <Channels definition={graph.definition} />}
      <Document title={PANEL.input} value={node?.input_schema} />
      <Document title={PANEL.output} value={node?.output_schema} />
      {item.kind !== "start" && <Document title={PANEL.settings} value={item.part} />}
      {item.kind !== "start" && <Document title={PANEL.before} value={before?.part} />}
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

/** Tasks that the panel lists. */
const MOST_TASKS = 100;

/** The tasks of the newest superstep, with links to the timeline. */
function Tasks({
  tasks,
  routeOf,
}: { tasks: readonly TaskState[] } & Pick<ItemPanelProps, "routeOf">) {
  if (tasks.length === 0 || routeOf === undefined) return null;
  const hidden = tasks.length - MOST_TASKS;
  return (
    <Section title={PANEL.tasks}>
      <ul className={styles.list}>
        {tasks.slice(0, MOST_TASKS).map(({ task, status, seq }) => (
          <li key={task}>
            <RouteLink to={routeOf(seq)}>
              <Text>{task}</Text>
            </RouteLink>{" "}
            <Status name={status} />
          </li>
        ))}
      </ul>
      {hidden > 0 && <p>{TEXTS.more(hidden)}</p>}
    </Section>
  );
}

function Cases({ item }: { item: Item }) {
  return (
    <Section title={PANEL.cases}>
      <ol className={styles.list}>
        {casesOf(item).map(({ when, to }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the order of the cases is their meaning.
          <li key={index}>
            <code className={styles.code}>
              <Text>{when === "" ? TEXTS.otherwise : when}</Text>
            </code>{" "}
            → <Text>{to.join(", ")}</Text>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Channels({ definition }: { definition: unknown }) {
  return (
    <>
      <Section title={PANEL.channels}>
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
              {schema !== undefined && <JsonTree label={name} value={schema} />}
            </li>
          ))}
        </ul>
      </Section>
      <Document title={PANEL.context} value={contextSchemaOf(definition)} />
    </>
  );
}

function reducerName(reducer: unknown): string {
  return typeof reducer === "string" ? reducer : JSON.stringify(reducer);
}
