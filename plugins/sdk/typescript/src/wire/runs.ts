// Calls of `runs`.

import * as raw from "wattle:plugin/runs@0.1.0";
import type { Json } from "../json.ts";
import {
  EndedRun,
  Interrupt,
  type Outcome,
  type Resume,
  type RunRef,
  type Start,
  Thread,
  type ThreadPage,
  type ThreadSearch,
  type ThreadSummary,
} from "../runs/index.ts";
import { call, extra, failure, option, rawExtra, rawOption, same, text, value } from "./convert.ts";

export function start(start: Start): RunRef {
  return call(() =>
    raw.start({
      graph: start.graph,
      input: text(start.input),
      threadId: rawOption(start.threadId, same),
      context: rawOption(start.context, text),
      metadata: rawOption(start.metadata, text),
      extra: rawExtra(start.extra),
    }),
  );
}

export function resume(resume: Resume): RunRef {
  return call(() =>
    raw.resume({
      threadId: resume.threadId,
      answers: resume.answers.map(([interrupt, answer]) => [interrupt, text(answer)]),
      onFailure: { tag: resume.onFailure },
      extra: rawExtra(resume.extra),
    }),
  );
}

export function wait({ threadId, runId }: RunRef): EndedRun {
  const ended = call(() => raw.wait({ threadId, runId }));
  return new EndedRun({
    run: ended.run,
    outcome: outcome(ended.outcome),
    state: value(ended.state),
  });
}

export function cancel({ threadId, runId }: RunRef): void {
  call(() => raw.cancel({ threadId, runId }));
}

export function thread(threadId: string): Thread | undefined {
  return option(
    call(() => raw.thread(threadId)),
    (info) =>
      new Thread({
        threadId: info.threadId,
        graph: info.graph,
        status: info.status,
        state: value(info.state),
        interrupts: info.interrupts.map(interrupt),
        runId: option(info.runId, same),
        createdMs: Number(info.createdMs),
        updatedMs: Number(info.updatedMs),
        metadata: value(info.metadata),
        extra: extra(info.extra),
      }),
  );
}

export function deleteThread(threadId: string): void {
  call(() => raw.deleteThread(threadId));
}

export function threads(search: ThreadSearch): ThreadPage {
  const page = call(() =>
    raw.threads({
      graph: rawOption(search.graph, same),
      text: rawOption(search.text, same),
      metadata: rawOption(search.metadata, text),
      after: rawOption(search.after, same),
      limit: search.limit,
      extra: rawExtra(search.extra),
    }),
  );
  return { threads: page.threads.map(summary), next: option(page.next, same) };
}

export function updateThread(threadId: string, metadata: Json): void {
  call(() => raw.updateThread(threadId, text(metadata), []));
}

export function events(threadId: string, after: number, limit: number): Json[] {
  return call(() => raw.events(threadId, after, limit)).map(value);
}

function outcome(result: raw.RunResult): Outcome {
  switch (result.tag) {
    case "interrupted":
      return { type: "interrupted", interrupts: result.val.map(interrupt) };
    case "failed":
      return { type: "failed", failure: failure(result.val) };
    case "other":
      return { type: "other", value: result.val };
    default:
      return { type: result.tag };
  }
}

function summary(thread: raw.ThreadSummary): ThreadSummary {
  return {
    threadId: thread.threadId,
    graph: thread.graph,
    status: thread.status,
    runId: option(thread.runId, same),
    createdMs: Number(thread.createdMs),
    updatedMs: Number(thread.updatedMs),
    metadata: value(thread.metadata),
    extra: extra(thread.extra),
  };
}

function interrupt(info: raw.InterruptInfo): Interrupt {
  return new Interrupt(info.id, info.node, value(info.payload), {
    responseSchema: option(info.responseSchema, value),
    askedMs: Number(info.askedMs),
    expiresMs: option(info.expiresMs, Number),
  });
}
