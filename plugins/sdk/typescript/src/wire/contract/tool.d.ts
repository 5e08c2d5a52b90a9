// `wit/wattle/tool.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/tool@0.1.0" {
  import type { Extra, Json, Option, Part, Update } from "wattle:plugin/types@0.1.0";

  export interface ToolInfo {
    name: string;
    description: string;
    argumentsSchema: Json;
    acceptsInvalid: boolean;
    extra: Extra;
  }

  export interface CallContext {
    tool: string;
    callId: string;
    threadId?: Option<string>;
    taskId?: Option<string>;
    tenant?: Option<string>;
    violations: string[];
    extra: Extra;
  }

  export interface ToolOutput {
    content: Part[];
    structured?: Option<Json>;
    isError: boolean;
    updates: Update[];
    extra: Extra;
  }
}
