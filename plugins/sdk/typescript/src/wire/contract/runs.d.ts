// `wit/wattle/runs.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/runs@0.1.0" {
  import type { Extra, Failure, Integer, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface StartRequest {
    graph: string;
    input: Json;
    threadId: Option<string>;
    context: Option<Json>;
    metadata: Option<Json>;
    extra: Extra;
  }

  export interface RunRef {
    threadId: string;
    runId: string;
  }

  export interface ResumeRequest {
    threadId: string;
    answers: Array<[string, Json]>;
    onFailure: { tag: "keep" } | { tag: "reopen" } | { tag: "other"; val: string };
    extra: Extra;
  }

  export interface InterruptInfo {
    id: string;
    node: string;
    payload: Json;
    responseSchema?: Option<Json>;
    askedMs: Integer;
    expiresMs?: Option<Integer>;
  }

  export type RunResult =
    | { tag: "completed" }
    | { tag: "interrupted"; val: InterruptInfo[] }
    | { tag: "failed"; val: Failure }
    | { tag: "cancelled" }
    | { tag: "other"; val: string };

  export interface EndedRun {
    run: RunRef;
    outcome: RunResult;
    state: Json;
  }

  export interface ThreadInfo {
    threadId: string;
    graph: string;
    status: string;
    state: Json;
    interrupts: InterruptInfo[];
    runId?: Option<string>;
    createdMs: Integer;
    updatedMs: Integer;
    metadata: Json;
    extra: Extra;
  }

  export interface ThreadSearch {
    graph: Option<string>;
    text: Option<string>;
    metadata: Option<Json>;
    after: Option<string>;
    limit: number;
    extra: Extra;
  }

  export interface ThreadSummary {
    threadId: string;
    graph: string;
    status: string;
    runId?: Option<string>;
    createdMs: Integer;
    updatedMs: Integer;
    metadata: Json;
    extra: Extra;
  }

  export interface ThreadPage {
    threads: ThreadSummary[];
    next?: Option<string>;
  }

  export function start(request: StartRequest): RunRef;
  export function resume(request: ResumeRequest): RunRef;
  export function wait(run: RunRef): EndedRun;
  export function cancel(run: RunRef): void;
  export function thread(threadId: string): Option<ThreadInfo>;
  export function deleteThread(threadId: string): void;
  export function threads(search: ThreadSearch): ThreadPage;
  export function updateThread(threadId: string, metadata: Json, extra: Extra): void;
  export function events(threadId: string, after: Integer, limit: number): Json[];
}
