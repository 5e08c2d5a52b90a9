// What an edit of the state consists of: the channels of a graph with their fields, what is written
// to them, and the node on whose behalf.
import { ApiError } from "@wattle/page";
import type { Schemas } from "../api/client.ts";
import { orMissing } from "../api/missing.ts";
import type { Thread } from "../api/thread.ts";
import { channelsOf, type GraphDocument } from "../graph/definition.ts";
import { requestGraph } from "../graph/read.ts";
import { type Checked, checked } from "../part/schema-form/check.ts";
import { type Draft, draftOf } from "../part/schema-form/draft.ts";
import { type Field, fieldOf } from "../part/schema-form/field.ts";
import type { Checkpoint } from "../state/read.ts";
import { EDITED_CHARS } from "./fork.ts";

/** A channel that can be written. */
export interface Channel {
  readonly name: string;
  readonly doc: string;
  /** Name of the reducer if it does more than to replace the value. */
  readonly reducer: string | undefined;
  /** Schema of the value; `undefined` if anything is accepted, or if it is not known. */
  readonly schema: unknown;
  /** The value at the checkpoint; `undefined` if it has none. */
  readonly value: unknown;
}

/** Whether a value replaces that of the channel, or is combined with it by the reducer. */
export type Mode = "replace" | "combine";

/** What is written to a channel. */
export interface Entry {
  readonly mode: Mode;
  readonly field: Field;
  readonly draft: Draft;
  /** True if the value is too long to be edited, and so left out. */
  readonly isTooLong: boolean;
}

/** The `as_node` of an edit that writes as an input, and of one after which nothing runs next. */
export const AS_INPUT = "__input__";
export const AS_END = "END";

/** Reducers that replace the value. */
const REPLACING = new Set(["last", "any", "ephemeral"]);

/** Reducers that take a value of the channel's schema as a write. */
const TYPED = new Set(["append", "sum", "min", "max"]);

/** Between the levels of a namespace, and between the name of a node and its task. */
const LEVELS = "|";
const TASK = ":";

/** Returns the channels of a graph; without its definition, those with a value. */
export function channelsFor(graph: GraphDocument | undefined, state: unknown): Channel[] {
  const values = new Map(Object.entries(Object(state)));
  const known = channelsOf(graph?.definition).map(({ name, doc, reducer, schema }) => ({
    name,
    doc,
    reducer: reducerName(reducer),
    schema,
    value: values.get(name),
  }));
  if (graph !== undefined) return known;
  return [...values].map(([name, value]) => {
    return { name, doc: "", reducer: undefined, schema: undefined, value };
  });
}

function reducerName(reducer: unknown): string | undefined {
  if (typeof reducer === "string") return REPLACING.has(reducer) ? undefined : reducer;
  const { plugin, reducer: name }: { plugin?: unknown; reducer?: unknown } = Object(reducer);
  if (typeof plugin !== "string" || typeof name !== "string") return undefined;
  return `${plugin}/${name}`;
}

/** Returns what a user begins with: the value that is replaced, or nothing. */
export function entryOf(channel: Channel, mode: Mode = "replace"): Entry {
  const { schema, value, reducer = "" } = channel;
  if (mode === "combine") {
    // Other reducers take parts of a value, of which the schema says nothing.
    const field = fieldOf(TYPED.has(reducer) ? (schema ?? true) : true);
    return { mode, field, draft: draftOf(field), isTooLong: false };
  }
  const field = fieldOf(schema ?? true);
  const isTooLong = value !== undefined && JSON.stringify(value).length > EDITED_CHARS;
  return { mode, field, draft: draftOf(field, isTooLong ? undefined : value), isTooLong };
}

/** Returns the names of the nodes as which an edit can write. */
export function nodesOf(graph: GraphDocument | undefined, { writers = [] }: Checkpoint): string[] {
  return [...new Set([...Object.keys(graph?.nodes ?? {}), ...writers])].sort();
}

/** Returns the author that the host would choose; an empty text if it would ask. */
export function authorOf({ writers = [], source }: Checkpoint): string {
  const [only, second] = writers;
  if (only !== undefined) return second === undefined ? only : "";
  return source === "loop" ? "" : AS_INPUT;
}

/** The problems of each channel, by its name. */
export type Problems = ReadonlyMap<string, Checked["errors"]>;

/** Returns the edit, and what is wrong with its values. */
export function editOf(
  author: string,
  entries: ReadonlyMap<string, Entry>,
): { edit: Schemas["EditDocument"]; problems: Problems } {
  const problems = new Map<string, Checked["errors"]>();
  const values: [string, unknown][] = [];
  const overwrite: string[] = [];
  // Nothing can be written after the end.
  for (const [name, { mode, field, draft }] of author === AS_END ? [] : entries) {
    const { value, errors } = checked(field, draft);
    if (errors.size > 0) problems.set(name, errors);
    values.push([name, value]);
    if (mode === "replace") overwrite.push(name);
  }
  const edit = { as_node: author, values: Object.fromEntries(values), overwrite };
  return { edit, problems };
}

/** Returns the channel that the host names in a refusal. */
export function refusedChannel(error: Error | undefined): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { channel }: { channel?: unknown } = Object(Object(error.body).details);
  return typeof channel === "string" ? channel : undefined;
}

/**
 * Reads the graph of a checkpoint in the version that made the checkpoint. Returns `null` if the
 * host does not have it, such as for a graph that a node started by itself.
 */
export async function readGraphOf(
  { app, graph, version }: Pick<Thread, "app" | "graph" | "version">,
  checkpoint: Checkpoint,
): Promise<GraphDocument | null> {
  const { namespace = "" } = checkpoint;
  const made = checkpoint.version ?? undefined;
  const levels = namespace === "" ? [] : namespace.split(LEVELS);
  let found = await readGraph(app, graph, levels.length === 0 ? (made ?? version) : version);
  for (const [index, level] of levels.entries()) {
    const [node = ""] = level.split(TASK);
    const nested = Object.hasOwn(found?.nodes ?? {}, node) && found?.nodes[node]?.subgraph;
    if (typeof nested !== "string") return null;
    const isLast = index === levels.length - 1;
    const pinned = isLast && made !== undefined ? await readGraph(app, nested, made) : null;
    found = pinned ?? (await readGraph(app, nested, undefined));
  }
  return found;
}

async function readGraph(
  app: string,
  graph: string,
  version: string | undefined,
): Promise<GraphDocument | null> {
  return (await orMissing(requestGraph({ app, graph, version }))) ?? null;
}
