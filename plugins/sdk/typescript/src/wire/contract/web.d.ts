// `wit/wattle/web.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/web@0.1.0" {
  import type { BlobRef, Extra, Integer, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface Route {
    method: string;
    path: string;
    extra: Extra;
  }

  export interface Request {
    method: string;
    path: string;
    route: string;
    params: Array<[string, string]>;
    query: Array<[string, string]>;
    headers: Array<[string, string]>;
    body: Uint8Array;
    tenant?: Option<string>;
    extra: Extra;
  }

  export type StreamFormat =
    | { tag: "sse" }
    | { tag: "ai-sdk" }
    | { tag: "ag-ui" }
    | { tag: "custom"; val: string }
    | { tag: "other"; val: string };

  export interface HandOff {
    threadId: string;
    runId?: Option<string>;
    format: StreamFormat;
    after?: Option<Integer>;
    extra: Extra;
  }

  export type Body =
    | { tag: "empty" }
    | { tag: "bytes"; val: Uint8Array }
    | { tag: "blob"; val: BlobRef }
    | { tag: "hand-off"; val: HandOff }
    | { tag: "other"; val: Json };

  export interface Response {
    status: number;
    headers: Array<[string, string]>;
    body: Body;
  }
}
