// Requests about a thread as a whole and about its runs, and what is read again after them.
import { useQueryClient } from "@tanstack/react-query";
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import type { RunPlace, ThreadPlace } from "../api/log.ts";
import type { Checkpoint, GraphPlace } from "../state/read.ts";

export type PendingCall = Schemas["PendingCallDocument"];

export type Decision = Schemas["DecisionDocument"];

export type Migration = Schemas["MigrationDocument"];

/** The queries whose results change when a thread does, by their first keys. */
const OF_THREADS: ReadonlySet<unknown> = new Set([
  "thread",
  "threads",
  "thread-counts",
  "all-runs",
  "run-counts",
  "runs",
  "run",
  "history",
  "checkpoint",
  "pending-calls",
  "inbox",
  "interrupt",
]);

/** Returns a function that reads what is shown of threads again. */
export function useRefresh(): () => void {
  const client = useQueryClient();
  return () =>
    void client.invalidateQueries({ predicate: ({ queryKey: [name] }) => OF_THREADS.has(name) });
}

/** Returns the path and the headers of requests about a thread. */
function about({ thread, tenant }: ThreadPlace) {
  return { params: { path: { thread } }, headers: tenantHeaders(tenant) };
}

/** Continues a thread without answers, and returns the place of the new run. */
export async function resume(place: ThreadPlace): Promise<RunPlace> {
  const request = { ...about(place), body: {} };
  const { run } = await ok(api.POST("/api/v1/threads/{thread}/resume", request));
  return { ...place, run };
}

/** Has a run stop before its next superstep. */
export function drain({ thread, run, tenant }: RunPlace): Promise<unknown> {
  const params = { path: { thread, run } };
  const headers = tenantHeaders(tenant);
  return ok(api.POST("/api/v1/threads/{thread}/runs/{run}/drain", { params, headers }));
}

/** Returns the calls of a thread that were started and have no result. */
export function readPendingCalls(place: ThreadPlace): Promise<PendingCall[]> {
  return ok(api.GET("/api/v1/threads/{thread}/open-calls", about(place)));
}

/** Settles a call that has not started again since it was read. */
export function settle(
  place: ThreadPlace,
  { task, scope, call, seq }: PendingCall,
  decision: Decision,
): Promise<unknown> {
  const request = { ...about(place), body: { task, scope, call, seq, decision } };
  return ok(api.POST("/api/v1/threads/{thread}/settle", request));
}

/** What a migration may do to the state. */
export interface MigrationOptions {
  /** True to drop the values of channels that the new graph lacks. */
  readonly drop: boolean;
  /** New values by channel. */
  readonly set: Readonly<Record<string, unknown>>;
}

/** Migrates a thread to the current code, or only reports what that changes. */
export function migrate(
  place: ThreadPlace,
  options: MigrationOptions,
  isDry: boolean,
): Promise<Migration> {
  const request = { ...about(place), body: { ...options, dry_run: isDry } };
  return ok(api.POST("/api/v1/threads/{thread}/migrate", request));
}

/** Applies one edit to a checkpoint, and returns the checkpoint that it makes. */
export function sendEdit(
  { namespace, ...place }: GraphPlace,
  checkpoint: number,
  edit: Schemas["EditDocument"],
): Promise<Checkpoint> {
  const graph = namespace === "" ? {} : { namespace };
  const request = { ...about(place), body: { ...graph, checkpoint, supersteps: [[edit]] } };
  return ok(api.POST("/api/v1/threads/{thread}/edits", request));
}
