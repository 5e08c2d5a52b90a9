// Implements `runs`: records requests, and gets the outcomes of runs from the script.

import type { Json } from "../../json.ts";
import {
  type EndedRun,
  PAGE_EVENTS,
  type Resume,
  type RunRef,
  type Start,
  type Thread,
} from "../../runs/index.ts";
import { current, play } from "../state.ts";

export function start(start: Start): RunRef {
  const { starts, notes } = current();
  starts?.(start);
  notes.started.push(start);
  const number = notes.started.length + notes.resumed.length;
  return { threadId: start.threadId ?? `thread-${number}`, runId: `run-${number}` };
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

export function events(threadId: string, after: number, limit: number): Json[] {
  const own = current().events.filter((event) => event.threadId === threadId);
  const page = own.slice(after, after + Math.min(limit, PAGE_EVENTS));
  return page.map(({ event }) => event);
}
