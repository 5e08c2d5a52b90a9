// What a fork begins with: the place in the log of a thread, the result that a call gets instead of
// its own, and the request.
import { tenantHeaders } from "../access/key.ts";
import { CALLS } from "../api/call.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { callResult, type LogEvent, type RunPlace, type ThreadPlace } from "../api/log.ts";

/** A checkpoint of the root graph, or a host call whose result the host replaces. */
export type Origin =
  | { readonly kind: "checkpoint"; readonly checkpoint: number; readonly isEnd: boolean }
  | {
      readonly kind: "call";
      readonly seq: number;
      /** The result as JSON, or what one looks like if the call failed. */
      readonly answer: string;
      readonly failure: string;
      /** True if the result is too long to be edited, and so left out. */
      readonly isTooLong: boolean;
      /** False for a function that never fails, so that the host takes no failure. */
      readonly canFail: boolean;
    };

/** What the call returns in the fork, or the input that is applied to the checkpoint. */
export type Change =
  | { readonly kind: "answer"; readonly value: unknown }
  | { readonly kind: "failure"; readonly value: unknown }
  | { readonly kind: "input"; readonly value: unknown }
  | { readonly kind: "none" };

/** Functions that have no failure. `is_infallible` beside `output_check` lists them. */
const INFALLIBLE = ["clock.now", "clock.monotonic", "clock.time-zone", "random.bytes"];

/**
 * Functions whose result the host replaces. `output_check` in
 * `host/run/src/hostcall/result_override.rs` lists them.
 */
const REPLACEABLE = new Set<string>([
  CALLS.complete,
  CALLS.stream,
  CALLS.generateImages,
  CALLS.callTool,
  CALLS.sendHttp,
  CALLS.querySql,
  ...INFALLIBLE,
  "tools.list",
  "clock.to-zone",
  "clock.from-zone",
]);

/** Characters of the longest value that is edited. A longer text would stop the browser. */
export const EDITED_CHARS = 200_000;

/** A failure, for a call that has none. */
const NEW_FAILURE = { code: "unavailable", message: "" };

/** Results of the calls that fail most often, in the form that the log has. */
const FORMS: Readonly<Record<string, unknown>> = {
  [CALLS.complete]: { parts: [{ text: "" }], finish_reason: "stop", usage: {}, model: "" },
  [CALLS.stream]: { parts: [{ text: "" }], finish_reason: "stop", usage: {}, model: "" },
  [CALLS.callTool]: { content: [{ text: "" }] },
  [CALLS.sendHttp]: { status: 200, headers: [], body: { text: "" }, url: "" },
  [CALLS.querySql]: { columns: [], rows: [], truncated: false },
};

/** Returns the place at which a fork can begin, or `undefined` if it cannot begin at an event. */
export function originOf(event: LogEvent): Origin | undefined {
  const { type, namespace, seq, checkpoint, next } = event;
  if (type === "called") return isFixed(event) ? undefined : callOf(event, seq);
  if (type !== "checkpointed" || typeof checkpoint !== "number") return undefined;
  // A subgraph begins with its parent graph.
  if (namespace !== undefined && namespace !== "") return undefined;
  return { kind: "checkpoint", checkpoint, isEnd: !Array.isArray(next) || next.length === 0 };
}

/** Returns true for a call that has returned, and whose result the host does not replace. */
export function isFixed({ type, function: name }: LogEvent): boolean {
  return type === "called" && !REPLACEABLE.has(String(name));
}

function callOf({ function: name, request, result }: LogEvent, seq: number): Origin {
  const { isFailed, value } = callResult(result);
  const answer = textOf(isFailed ? formOf(String(name), request) : value);
  const failure = textOf(isFailed ? value : NEW_FAILURE);
  const isTooLong = answer.length > EDITED_CHARS;
  const canFail = !INFALLIBLE.includes(String(name));
  return { kind: "call", seq, answer: isTooLong ? "" : answer, failure, isTooLong, canFail };
}

/** Returns what a result of a function looks like. */
function formOf(name: string, request: unknown): unknown {
  const form = FORMS[name];
  const { url }: { url?: unknown } = Object(request);
  return name === CALLS.sendHttp && typeof url === "string" ? { ...Object(form), url } : form;
}

/** Returns what a result of a function looks like as JSON, an empty text if that is not known. */
export function resultForm(name: string): string {
  return textOf(formOf(name, undefined));
}

function textOf(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value, undefined, 2);
}

/** Starts a fork, and returns the place of its run. */
export async function startFork(
  { thread, tenant }: ThreadPlace,
  origin: Origin,
  change: Change,
  isCopy: boolean,
): Promise<RunPlace> {
  const body: Schemas["ForkDocument"] = { ...startOf(origin, change), copy: isCopy };
  const params = { path: { thread } };
  const headers = tenantHeaders(tenant);
  const started = await ok(api.POST("/api/v1/threads/{thread}/fork", { params, headers, body }));
  return { thread: started.thread, run: started.run, tenant };
}

function startOf(origin: Origin, change: Change): Schemas["ForkDocument"] {
  if (origin.kind === "call") {
    return { call: { seq: origin.seq, [change.kind]: "value" in change ? change.value : null } };
  }
  const input = change.kind === "input" ? { input: change.value } : {};
  return { checkpoint: origin.checkpoint, ...input };
}
