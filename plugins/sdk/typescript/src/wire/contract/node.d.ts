// `wit/wattle/node.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/node@0.1.0" {
  import type { Extra, Failure, Json, Option, Send, Update } from "wattle:plugin/types@0.1.0";

  export interface NodeInfo {
    name: string;
    doc: string;
    inputSchema: Json;
    outputSchema: Json;
    extra: Extra;
  }

  export interface TaskContext {
    node: string;
    graph: string;
    threadId: string;
    runId: string;
    taskId: string;
    step: number;
    attempt: number;
    remainingSteps: number;
    tenant?: Option<string>;
    context: Json;
    extra: Extra;
  }

  export interface Outcome {
    updates: Update[];
    goto: string[];
    sends: Send[];
    extra: Extra;
  }

  export type { Failure };
}
