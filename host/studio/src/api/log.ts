// The log of a thread: the events of a run as outlines, page by page, and one event in full.
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "./client.ts";
import { given } from "./given.ts";

/** What happened, with the sizes of large values in place of the values. */
export type EventOutline = Schemas["EventOutline"];

/** An outline of one type. */
export type OutlineOf<T extends EventOutline["type"]> = Extract<EventOutline, { type: T }>;

/** An event with its request, result and other values. */
export type LogEvent = Schemas["EventDocument"];

/** What a host call returned, or the failure of it. */
export interface CallResult {
  isFailed: boolean;
  value: unknown;
}

/** Returns what the result of a call says, which the log has as `Ok` or `Err`. */
export function callResult(result: unknown): CallResult {
  const fields: { Ok?: unknown; Err?: unknown } = Object(result);
  const isFailed = "Err" in fields;
  return { isFailed, value: isFailed ? fields.Err : fields.Ok };
}

/** A thread, and the tenant that it belongs to if the address named one. */
export interface ThreadPlace {
  thread: string;
  tenant: string | undefined;
}

/** A run of a thread. */
export interface RunPlace extends ThreadPlace {
  run: string;
}

interface OutlineOptions {
  /** Only events of this run. The first page begins at the first event of the run. */
  run?: string;
  /** Only events of this type. */
  type?: EventOutline["type"];
  signal?: AbortSignal;
}

export interface OutlinePage {
  items: readonly EventOutline[];
  /** The sequence number after which the next page begins; `undefined` at the end of the log. */
  next: number | undefined;
  /** The newest event of the thread. */
  lastSeq: number;
}

/** Returns a page of the events of a thread after a sequence number. */
export async function readOutlines(
  { thread, tenant }: ThreadPlace,
  after: number,
  { run, type, signal }: OutlineOptions,
): Promise<OutlinePage> {
  const query = { after, outline: true, ...given({ run, types: type }) };
  const params = { path: { thread }, query };
  const init = { params, headers: tenantHeaders(tenant), ...given({ signal }) };
  const page = await ok(api.GET("/api/v1/threads/{thread}/log", init));
  // The request asked for outlines.
  const items = page.items as EventOutline[];
  return { items, next: page.next_after ?? undefined, lastSeq: page.last_seq };
}

/** Returns the event with this sequence number; `null` if the thread has none. */
export async function readEvent(
  { thread, tenant }: ThreadPlace,
  seq: number,
  signal: AbortSignal,
): Promise<LogEvent | null> {
  const params = { path: { thread }, query: { after: seq - 1, limit: 1 } };
  const headers = tenantHeaders(tenant);
  const page = await ok(api.GET("/api/v1/threads/{thread}/log", { params, headers, signal }));
  // The request asked for events in full.
  const [event] = page.items as LogEvent[];
  return event?.seq === seq ? event : null;
}
