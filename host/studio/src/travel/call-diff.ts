// What differs between two host calls of a comparison: their requests, and their results.
import { isCompletion } from "../api/call.ts";
import { callResult, type LogEvent } from "../api/log.ts";
import { type Diff, diffOf } from "../part/json-diff/diff.ts";

export interface CallDiff {
  readonly request: Diff;
  /** True if the requests differ, but not in what the log has of them. */
  readonly isUnseen: boolean;
  /** `undefined` if only one of the calls failed. */
  readonly result: Diff | undefined;
}

/** Returns what differs between two calls; `undefined` unless both have returned. */
export function callDiff(left: LogEvent, right: LogEvent): CallDiff | undefined {
  if (left.type !== "called" || right.type !== "called") return undefined;
  const request = diffOf(left.request, right.request);
  const isUnseen = left.digest !== right.digest && request.changes.length === 0;
  const [one, other] = [callResult(left.result), callResult(right.result)];
  const isOneKind = one.isFailed === other.isFailed;
  const result = isOneKind ? diffOf(comparable(left), comparable(right)) : undefined;
  return { request, isUnseen, result };
}

/**
 * Returns the result of a call, without the ids that the digest of a completion leaves out: its own
 * is derived from the task, and those of tool calls are assigned by the provider.
 */
function comparable({ function: name, result }: LogEvent): unknown {
  const { isFailed, value } = callResult(result);
  if (isFailed || !isCompletion(String(name))) return value;
  const completion = withoutId(value);
  const { parts } = completion;
  return Array.isArray(parts) ? { ...completion, parts: parts.map(comparablePart) } : completion;
}

function comparablePart(part: unknown): unknown {
  const fields: { tool_call?: unknown } = Object(part);
  const { tool_call: call } = fields;
  return call === undefined ? part : { ...fields, tool_call: withoutId(call) };
}

function withoutId(value: unknown): Record<string, unknown> {
  const { id, ...rest } = Object(value);
  return rest;
}
