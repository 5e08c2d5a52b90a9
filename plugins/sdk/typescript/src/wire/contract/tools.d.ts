// `wit/wattle/tools.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/tools@0.1.0" {
  import type { ToolInfo, ToolOutput } from "wattle:plugin/tool@0.1.0";
  import type { Extra, Json, Option, RawResult } from "wattle:plugin/types@0.1.0";

  export interface Request {
    tool: string;
    callId: string;
    arguments: Json;
    timeoutMs: Option<number>;
    extra: Extra;
  }

  export function list(): ToolInfo[];
  export function call(request: Request): ToolOutput;
  export function callAll(requests: Request[]): Array<RawResult<ToolOutput>>;
}
