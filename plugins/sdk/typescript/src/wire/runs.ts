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

function interrupt(info: raw.InterruptInfo): Interrupt {
  return new Interrupt(info.id, info.node, value(info.payload), {
    responseSchema: option(info.responseSchema, value),
    askedMs: Number(info.askedMs),
    expiresMs: option(info.expiresMs, Number),
  });
}
