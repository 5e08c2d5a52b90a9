// What a graph consists of, as it is drawn: items and the lines between them. The definition is that
// of the graph's author; what is not valid in it is left out.
import type { Schemas } from "../api/client.ts";

export type GraphDocument = Schemas["GraphDocument"];

/** A graph, and those that run as its nodes, by name. */
export interface Graphs {
  readonly root: GraphDocument;
  readonly graphs: ReadonlyMap<string, GraphDocument>;
  /** Those that the host does not have. */
  readonly missing: GraphVersions;
}

/** The versions of graphs by name; `undefined` for that of new runs. */
export type GraphVersions = ReadonlyMap<string, string | undefined>;

/** `start` and `end` stand for the beginning and the end of every path. */
export type ItemKind = "start" | "end" | "node" | "subgraph" | "branch";

export interface Item {
  /** Differs from all others of the graph. */
  readonly id: string;
  readonly kind: ItemKind;
  /** Name of a node or branch. */
  readonly name: string;
  /** The graph that runs as the node. */
  readonly graph: string | undefined;
  /** True for a subgraph whose state is kept, so that its tasks share a namespace. */
  readonly keepsState: boolean;
  /** The part of the definition. */
  readonly part: unknown;
}

/** `goto`: a node may choose the target. `error`: the target handles a failure. */
export type LineKind = "edge" | "case" | "goto" | "error";

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly kind: LineKind;
  /** The condition of a case. */
  readonly label: string;
}

/** A graph as items and lines. */
export interface Shape {
  readonly items: readonly Item[];
  readonly lines: readonly Line[];
}

/** Ids of the items that are neither nodes nor branches. No node has such a name. */
export const START = "[start]";
export const END_ITEM = "[end]";

/** What an edge leads to if a path ends there. */
const END = "END";

/** How the id of a branch begins. */
const BRANCH = "?";

/** The state of a subgraph that is kept between invocations. */
const OWN = "own";

/** Text on a line that is taken if no case of the branch matches. */
const OTHERWISE = "otherwise";

/** Text on a line to the handler of failures. */
const ON_ERROR = "on error";

type Fields = Readonly<Record<string, unknown>>;

/** Returns the shape of a graph definition. */
export function shapeOf(definition: unknown): Shape {
  const graph = fieldsOf(definition);
  const nodes = Object.entries(fieldsOf(graph.nodes));
  const names = nodes.map(([name]) => name);
  const branches = listOf(graph.branches).map(fieldsOf);
  const items = [
    itemOf(START, "start", "", graph),
    ...nodes.map(([name, node]) => nodeOf(name, fieldsOf(node))),
    ...branches.map((branch) => itemOf(branchId(branch), "branch", textOf(branch.name), branch)),
    itemOf(END_ITEM, "end", "", undefined),
  ];
  const found = [
    ...namesOf(graph.entry).map((to) => lineOf(START, to, "edge")),
    ...listOf(graph.edges).map(fieldsOf).flatMap(edgeLines),
    ...branches.flatMap(branchLines),
    ...nodes.flatMap(([name, node]) => nodeLines(name, fieldsOf(node), fieldsOf(graph.defaults))),
  ];
  const lines = [...found, ...lastLines(names, found)];
  const known = new Map(items.map((item) => [item.id, item]));
  return {
    items: [...known.values()],
    lines: distinct(lines.filter(({ from, to }) => known.has(from) && known.has(to))),
  };
}

/** Returns the id of a branch of a definition. */
function branchId(branch: Fields): string {
  return BRANCH + textOf(branch.name);
}

function itemOf(id: string, kind: ItemKind, name: string, part: unknown): Item {
  return { id, kind, name, graph: undefined, keepsState: false, part };
}

function nodeOf(name: string, node: Fields): Item {
  const item = itemOf(name, "node", name, node);
  if (typeof node.graph !== "string") return item;
  return { ...item, kind: "subgraph", graph: node.graph, keepsState: node.state === OWN };
}

function lineOf(from: string, to: string, kind: LineKind, label = ""): Line {
  return { from, to: to === END ? END_ITEM : to, kind, label };
}

function edgeLines(edge: Fields): Line[] {
  return namesOf(edge.from).flatMap((from) =>
    namesOf(edge.to).map((to) => lineOf(from, to, "edge")),
  );
}

/** Returns the lines from the nodes after which a path ends, always or if they choose no target. */
function lastLines(names: readonly string[], lines: readonly Line[]): Line[] {
  const going = (...kinds: LineKind[]) =>
    new Set(lines.filter(({ kind }) => kinds.includes(kind)).map(({ from }) => from));
  const [onward, choosing] = [going("edge", "case"), going("goto")];
  const last = names.filter((name) => !onward.has(name));
  return last.map((name) => lineOf(name, END, choosing.has(name) ? "goto" : "edge"));
}

function branchLines(branch: Fields): Line[] {
  const id = branchId(branch);
  return [
    ...namesOf(branch.from).map((from) => lineOf(from, id, "edge")),
    ...casesOf({ part: branch }).flatMap((found) => caseLines(id, found)),
  ];
}

/** Returns the lines of a case of the branch with this id. */
export function caseLines(id: string, { when, to }: Case): Line[] {
  return to.map((target) => lineOf(id, target, "case", when || OTHERWISE));
}

function nodeLines(name: string, node: Fields, defaults: Fields): Line[] {
  const shared = textOf(defaults.on_error);
  // The handler of all nodes does not handle its own failures.
  const handler = textOf(node.on_error) || (shared === name ? "" : shared);
  return [
    ...namesOf(node.goto).map((to) => lineOf(name, to, "goto")),
    ...(handler === "" ? [] : [lineOf(name, handler, "error", ON_ERROR)]),
  ];
}

/** Returns the lines without those that repeat another one. */
function distinct(lines: readonly Line[]): Line[] {
  return [...new Map(lines.map((line) => [lineKey(line), line])).values()];
}

/** Returns a text that only equal lines have in common. */
export function lineKey({ from, to, kind, label }: Line): string {
  return JSON.stringify([from, to, kind, label]);
}

/** A case of a branch. */
export interface Case {
  /** The condition; empty for the case that is taken if no other one matches. */
  when: string;
  to: readonly string[];
}

/** Returns the cases of a branch, in order. */
export function casesOf({ part }: Pick<Item, "part">): Case[] {
  const cases = listOf(fieldsOf(part).cases).map(fieldsOf);
  return cases.map(({ when, to }) => ({ when: textOf(when), to: namesOf(to) }));
}

/** A channel of a graph with its schema. */
export interface Channel {
  name: string;
  doc: string;
  reducer: unknown;
  schema: unknown;
}

/** Returns the channels of a graph definition. */
export function channelsOf(definition: unknown): Channel[] {
  const channels = Object.entries(fieldsOf(fieldsOf(definition).channels));
  return channels.map(([name, channel]) => {
    const { doc, reducer, schema } = fieldsOf(channel);
    return { name, doc: textOf(doc), reducer, schema };
  });
}

/** Returns the description of a graph. */
export function docOf(definition: unknown): string {
  return textOf(fieldsOf(definition).doc);
}

/** Returns the schema of the run context; `undefined` if anything is accepted. */
export function contextSchemaOf(definition: unknown): unknown {
  return fieldsOf(definition).context_schema;
}

function fieldsOf(value: unknown): Fields {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns one name or several, as an author may write them. */
function namesOf(value: unknown): string[] {
  const names = Array.isArray(value) ? value : [value];
  return names.filter((name): name is string => typeof name === "string");
}
