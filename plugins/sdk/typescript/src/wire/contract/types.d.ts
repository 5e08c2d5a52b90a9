// The types of `wit/wattle/types.wit` as engines show them to JavaScript. Each interface of the
// contract has a file of its own.
//
// Names are in camel case, variants are objects with `tag` and `val`, and the failure of a function
// is an exception with a `payload`. QuickJS has numbers for 64-bit integers and `null` for a
// missing option, StarlingMonkey `bigint` and `undefined`.

declare module "wattle:plugin/types@0.1.0" {
  export type Json = string;
  export type Extra = Array<[string, Json]>;
  export type BlobRef = string;
  export type Option<T> = T | null | undefined;
  export type Integer = number | bigint;
  export type RawResult<T> = { tag: "ok"; val: T } | { tag: "err"; val: Failure };

  export interface Failure {
    code: string;
    message: string;
    retryable: boolean;
    details?: Option<Json>;
  }

  export interface Update {
    channel: string;
    value: Json;
    overwrite: boolean;
  }

  export interface Send {
    node: string;
    input: Json;
    extra: Extra;
  }

  export interface Image {
    source:
      | { tag: "blob"; val: BlobRef }
      | { tag: "url"; val: string }
      | { tag: "other"; val: string };
    mediaType: string;
    extra: Extra;
  }

  export interface ToolCall {
    id: string;
    name: string;
    arguments: Json;
    extra: Extra;
  }

  export interface ToolResult {
    callId: string;
    content: string;
    isError: boolean;
    extra: Extra;
  }

  export type Part =
    | { tag: "text"; val: string }
    | { tag: "image"; val: Image }
    | { tag: "tool-call"; val: ToolCall }
    | { tag: "tool-result"; val: ToolResult }
    | { tag: "reasoning"; val: string }
    | { tag: "other"; val: Json };

  export type Role =
    | { tag: "system" }
    | { tag: "user" }
    | { tag: "assistant" }
    | { tag: "tool" }
    | { tag: "other"; val: string };

  export interface Message {
    role: Role;
    parts: Part[];
    extra: Extra;
  }
}
