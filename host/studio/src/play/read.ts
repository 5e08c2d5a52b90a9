// The requests of the playground.
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { type RunPlace, readEvent, type ThreadPlace } from "../api/log.ts";
import { readThread, type Thread } from "../api/thread.ts";
import { readCheckpoint } from "../state/read.ts";
import type { CaseRun } from "./case.ts";

export type Tool = Schemas["ToolDocument"];

export type ToolCall = Schemas["ToolCallDocument"];

export type NodeCall = Schemas["NodeCallDocument"];

/** A graph, for a tenant if the host needs to know one. */
export interface GraphOf {
  app: string;
  graph: string;
  tenant: string | undefined;
}

/** Interval at which a visible tab reads the tools of an app, in milliseconds. */
const INTERVAL_MS = 10_000;

/** Reads the tools of an app. */
export function useTools(app: string): UseQueryResult<Tool[]> {
  return useQuery({
    queryKey: ["tools", app],
    queryFn: () => ok(api.GET("/api/v1/apps/{app}/tools", { params: { path: { app } } })),
    refetchInterval: INTERVAL_MS,
  });
}

/**
 * The input of a tool, and the tenant on whose behalf it is called. The tenant is in the body of
 * the request, in which the operator may name one and stays the operator.
 */
interface ToolInput {
  input: unknown;
  tenant: string | undefined;
}

/** Calls a tool of an app outside of any run. */
export function callTool(
  app: string,
  tool: string,
  { input, tenant }: ToolInput,
  signal: AbortSignal,
): Promise<ToolCall> {
  const params = { path: { app, tool } };
  const body = { input, ...given({ tenant }) };
  return ok(api.POST("/api/v1/apps/{app}/tools/{tool}/call", { params, body, signal }));
}

/** Calls a tool of a standalone plugin outside of any run and any app. */
export function callPluginTool(
  plugin: string,
  tool: string,
  { input, tenant }: ToolInput,
  signal: AbortSignal,
): Promise<ToolCall> {
  const params = { path: { plugin, tool } };
  const body = { input, ...given({ tenant }) };
  return ok(api.POST("/api/v1/plugins/{plugin}/tools/{tool}/call", { params, body, signal }));
}

/** A node of a plugin, in an app or of a standalone plugin. */
interface NodeOf {
  app: string | undefined;
  plugin: string;
  node: string;
}

interface NodeInput extends ToolInput {
  config?: unknown;
}

/** Calls a node outside of any run. */
export function callNode(
  { app, plugin, node }: NodeOf,
  { input, config, tenant }: NodeInput,
  signal: AbortSignal,
): Promise<NodeCall> {
  const body = { input, ...given({ config, tenant }) };
  if (app === undefined) {
    const params = { path: { plugin, node } };
    return ok(api.POST("/api/v1/plugins/{plugin}/nodes/{node}/call", { params, body, signal }));
  }
  const params = { path: { app, node: `${plugin}/${node}` } };
  return ok(api.POST("/api/v1/apps/{app}/nodes/{node}/call", { params, body, signal }));
}

/** The context of a run; absent if the run has none. */
export interface GivenContext {
  context?: unknown;
}

/** What a run begins with: the input of its graph, on a thread or a new one, or one node alone. */
export type Start =
  | { kind: "graph"; input: unknown; context?: unknown; thread?: string | undefined }
  | { kind: "node"; node: string; input: unknown; context?: unknown };

/** Starts a run, and returns its place. */
export async function startRun({ app, graph, tenant }: GraphOf, start: Start): Promise<RunPlace> {
  const { context } = start;
  const body: Schemas["StartDocument"] = { graph, ...bodyOf(start), ...given({ context }) };
  const params = { path: { app } };
  const headers = tenantHeaders(tenant);
  const started = await ok(api.POST("/api/v1/apps/{app}/runs", { params, headers, body }));
  return { thread: started.thread_id, run: started.run, tenant };
}

function bodyOf(start: Start): Pick<Schemas["StartDocument"], "input" | "goto" | "options"> {
  if (start.kind === "node") {
    const { node, input } = start;
    return { input: {}, goto: [{ node, input }], options: { interrupt_after: "*" } };
  }
  const { input, thread } = start;
  return { input, ...given({ thread_id: thread }) };
}

/** Sequence number of the first event of a thread. */
export const FIRST_SEQ = 1;

/** The checkpoints of a run, by their numbers. */
interface RunCheckpoints {
  /** The one that was made of the input. */
  input: number;
  /** The one with the end state; `undefined` if this state is not needed. */
  end: number | undefined;
}

/** The first run of a thread, after its end. */
interface PastRun {
  given: Pick<CaseRun, "input" | "context">;
  /** The end state; empty if it is not needed. */
  state: unknown;
  /** The interrupts that the run left; none if the thread has gone on. */
  interrupts: Thread["interrupts"];
}

/**
 * Reads the first run of a thread, after its end: its input and its end state from checkpoints,
 * since the state of the thread may have been edited, and its context from the first event.
 */
export async function readPast(
  place: RunPlace,
  { input, end }: RunCheckpoints,
  signal: AbortSignal,
): Promise<PastRun> {
  const root = { ...place, namespace: "" };
  const [event, first, last, thread] = await Promise.all([
    readEvent(place, FIRST_SEQ, signal),
    readCheckpoint(root, String(input), signal),
    end === undefined ? undefined : readCheckpoint(root, String(end), signal),
    readThread(place),
  ]);
  const channels = Object.entries(Object(first.state));
  const values = channels.filter(([channel]) => first.changed.includes(channel));
  return {
    given: { input: Object.fromEntries(values), context: event?.context },
    state: last?.state ?? {},
    interrupts: thread.run === place.run ? thread.interrupts : [],
  };
}

/** Reads a thread as a test of later code. */
export function readTest({ thread, tenant }: ThreadPlace): Promise<Blob> {
  const params = { path: { thread }, query: {} };
  const headers = tenantHeaders(tenant);
  return ok(api.GET("/api/v1/threads/{thread}/test", { params, headers, parseAs: "blob" }));
}
