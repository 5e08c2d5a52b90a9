// Implements `runs`: records requests, and gets the outcomes of runs from the script. Lists and
// updates of threads have the semantics of the host.

import { Failure } from "../../failure.ts";
import type { Extra, Json } from "../../json.ts";
import {
  type EndedRun,
  PAGE_EVENTS,
  type Resume,
  type RunRef,
  type Start,
  Thread,
  type ThreadPage,
  type ThreadSearch,
  type ThreadSummary,
} from "../../runs/index.ts";
import { REJECT_IF_INTERRUPTED } from "../../runs/request.ts";
import { current, play } from "../state.ts";

/** The place of a thread in a list. */
type Position = Pick<Thread, "updatedMs" | "threadId">;

export function start(start: Start): RunRef {
  const { starts, notes } = current();
  starts?.(start);
  if (start.extra[REJECT_IF_INTERRUPTED] === true) rejectIfInterrupted(start);
  notes.started.push(start);
  const number = notes.started.length + notes.resumed.length;
  return { threadId: start.threadId ?? `thread-${number}`, runId: `run-${number}` };
}

function rejectIfInterrupted({ graph, threadId = "" }: Start): void {
  const thread = current().threads.get(threadId);
  if (thread?.graph !== graph || thread.status !== "interrupted") return;
  if (thread.interrupts.length === 0) return;
  const text = `thread \`${threadId}\` is interrupted and waits for answers`;
  throw Failure.conflict(text).withDetails({ reason: "interrupted" });
}

export function resume(resume: Resume): RunRef {
  const { resumes, notes } = current();
  resumes?.(resume);
  notes.resumed.push(resume);
  const number = notes.started.length + notes.resumed.length;
  return { threadId: resume.threadId, runId: `run-${number}` };
}

export function wait(run: RunRef): EndedRun {
  return play(current().runEnds, run, "FakeHost.runEnds");
}

export function cancel(run: RunRef): void {
  current().notes.cancelled.push(run);
}

export function thread(threadId: string): Thread | undefined {
  return current().threads.get(threadId);
}

export function deleteThread(threadId: string): void {
  current().threads.delete(threadId);
}

export function threads({ graph, text = "", metadata, after, limit }: ThreadSearch): ThreadPage {
  const wanted = fieldsOf(metadata);
  const from = after === undefined ? undefined : position(after);
  const found = [...current().threads.values()].filter(
    (thread) =>
      (graph === undefined || thread.graph === graph) &&
      contains(thread.metadata, wanted) &&
      hasText(thread, text.toLowerCase()) &&
      (from === undefined || compare(thread, from) > 0),
  );
  const page = found.sort(compare).slice(0, Math.max(limit, 1));
  const last = page.length < found.length ? page.at(-1) : undefined;
  const next = last === undefined ? undefined : `${last.updatedMs}.${last.threadId}`;
  return { threads: page.map(summary), next };
}

export function updateThread(threadId: string, metadata: Json): void {
  const { threads, nowMs } = current();
  const added = fieldsOf(metadata);
  const thread = threads.get(threadId);
  if (thread === undefined) {
    throw Failure.notFound(`there is no thread \`${threadId}\`, or it has expired`);
  }
  const all = { ...fieldsOf(thread.metadata), ...added };
  threads.set(threadId, new Thread({ ...thread, metadata: all, updatedMs: nowMs }));
}

export function events(threadId: string, after: number, limit: number): Json[] {
  const { events, threads } = current();
  const own = events.filter((event) => event.threadId === threadId);
  if (own.length === 0 && !threads.has(threadId)) {
    throw Failure.notFound(`there is no thread \`${threadId}\``);
  }
  const page = own.slice(after, after + Math.min(limit, PAGE_EVENTS));
  return page.map(({ event }) => event);
}

/** Orders threads as a list does: newest update first, and then by id. */
function compare(one: Position, other: Position): number {
  if (one.updatedMs !== other.updatedMs) return other.updatedMs - one.updatedMs;
  if (one.threadId === other.threadId) return 0;
  return one.threadId < other.threadId ? -1 : 1;
}

/** Parses the `next` of a page. */
function position(next: string): Position {
  const [, updatedMs, threadId] = /^(-?\d+)\.(.+)$/.exec(next) ?? [];
  if (updatedMs === undefined || threadId === undefined) {
    throw Failure.invalid("`after` must be the `next` of another page");
  }
  return { updatedMs: Number(updatedMs), threadId };
}

/** Returns the fields of metadata. Missing metadata has none. */
function fieldsOf(metadata: Json | undefined): Extra {
  if (metadata === undefined || metadata === null) return {};
  if (!isObject(metadata)) throw Failure.invalid("`metadata` is not a JSON object");
  return metadata;
}

function isObject(value: Json): value is Extra {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns true if a value contains another one. Objects may have additional fields. */
function contains(known: Json, wanted: Json): boolean {
  if (!isObject(known) || !isObject(wanted)) return isEqual(known, wanted);
  return Object.entries(wanted).every(
    ([name, value]) => Object.hasOwn(known, name) && contains(known[name] ?? null, value),
  );
}

/** Returns true if two values are equal. The order of fields is irrelevant. */
function isEqual(one: Json, other: Json): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => isEqual(item, other[at] ?? null));
  }
  if (isObject(one) && isObject(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => {
        return Object.hasOwn(other, name) && isEqual(one[name] ?? null, other[name] ?? null);
      })
    );
  }
  return one === other;
}

/** Returns true if a thread contains a text in lower case. */
function hasText({ threadId, runId = "", graph, metadata }: Thread, text: string): boolean {
  return [threadId, runId, graph, ...textsOf(metadata)].some((found) =>
    found.toLowerCase().includes(text),
  );
}

/** Returns the strings in a value. */
function textsOf(value: Json): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsOf);
}

function summary(thread: Thread): ThreadSummary {
  const { threadId, graph, status, runId, createdMs, updatedMs, metadata } = thread;
  return { threadId, graph, status, runId, createdMs, updatedMs, metadata, extra: {} };
}
