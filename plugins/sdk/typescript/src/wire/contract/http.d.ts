// `wit/wattle/http.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/http@0.1.0" {
  import type { BlobRef, Extra, Json, Option, RawResult } from "wattle:plugin/types@0.1.0";

  export type Body =
    | { tag: "empty" }
    | { tag: "text"; val: string }
    | { tag: "bytes"; val: Uint8Array }
    | { tag: "blob"; val: BlobRef }
    | { tag: "other"; val: Json };

  export interface Request {
    method: string;
    url: string;
    headers: Array<[string, string]>;
    body: Body;
    timeoutMs: Option<number>;
    idempotencyKey: Option<string>;
    extra: Extra;
  }

  export interface Response {
    status: number;
    headers: Array<[string, string]>;
    body: Uint8Array;
    url: string;
    extra: Extra;
  }

  export function send(request: Request): Response;
  export function sendAll(requests: Request[]): Array<RawResult<Response>>;
}
