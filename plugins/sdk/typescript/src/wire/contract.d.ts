// The contract as engines show it to JavaScript: the types of `wit/wattle`.
//
// Names are in camel case, variants are objects with `tag` and `val`, and the failure of a function is
// an exception with a `payload`. QuickJS has numbers for 64-bit integers and `null` for a missing
// option, StarlingMonkey `bigint` and `undefined`.

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

declare module "wattle:plugin/reducer@0.1.0" {
  import type { Extra } from "wattle:plugin/types@0.1.0";

  export interface ReducerInfo {
    name: string;
    doc: string;
    extra: Extra;
  }
}

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

declare module "wattle:plugin/llm@0.1.0" {
  import type {
    BlobRef,
    Extra,
    Integer,
    Json,
    Message,
    Option,
    Part,
    RawResult,
  } from "wattle:plugin/types@0.1.0";

  export interface ToolDefinition {
    name: string;
    description: string;
    argumentsSchema: Json;
    extra: Extra;
  }

  export type ToolChoice =
    | { tag: "auto" }
    | { tag: "none" }
    | { tag: "required" }
    | { tag: "tool"; val: string }
    | { tag: "other"; val: string };

  export interface Request {
    route: string;
    messages: Message[];
    tools: ToolDefinition[];
    toolChoice: ToolChoice;
    responseSchema: Option<{ name: string; schema: Json }>;
    temperature: Option<number>;
    maxOutputTokens: Option<number>;
    seed: Option<Integer>;
    stop: string[];
    extra: Extra;
  }

  export interface Usage {
    inputTokens?: Option<Integer>;
    outputTokens?: Option<Integer>;
    cachedInputTokens?: Option<Integer>;
    reasoningTokens?: Option<Integer>;
    extra: Extra;
  }

  export interface Completion {
    parts: Part[];
    structured?: Option<Json>;
    finishReason:
      | { tag: "stop" }
      | { tag: "length" }
      | { tag: "tool-calls" }
      | { tag: "content-filter" }
      | { tag: "other"; val: string };
    usage: Usage;
    model: string;
    extra: Extra;
  }

  export type StreamEvent =
    | { tag: "text"; val: string }
    | { tag: "reasoning"; val: string }
    | { tag: "tool-call-delta"; val: [number, Option<string>, string] }
    | { tag: "other"; val: Json };

  export interface CompletionStream {
    next(): StreamEvent[];
    finish(): Completion;
    [Symbol.dispose]?(): void;
  }

  export interface ImageRequest {
    route: string;
    prompt: string;
    count: number;
    aspectRatio: Option<string>;
    extra: Extra;
  }

  export interface GeneratedImage {
    blob: BlobRef;
    mediaType: string;
    extra: Extra;
  }

  export interface RouteInfo {
    provider: string;
    model: string;
    hasFallback: boolean;
    extra: Extra;
  }

  export function complete(request: Request): Completion;
  export function completeAll(requests: Request[]): Array<RawResult<Completion>>;
  export function stream(request: Request): CompletionStream;
  export function generateImages(request: ImageRequest): GeneratedImage[];
  export function route(name: string): RouteInfo;
}

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

declare module "wattle:plugin/sql@0.1.0" {
  import type { Integer, Json } from "wattle:plugin/types@0.1.0";

  export type Value =
    | { tag: "null" }
    | { tag: "boolean"; val: boolean }
    | { tag: "integer"; val: Integer }
    | { tag: "real"; val: number }
    | { tag: "text"; val: string }
    | { tag: "bytes"; val: Uint8Array }
    | { tag: "json"; val: Json }
    | { tag: "other"; val: string };

  export interface Rows {
    columns: Array<{ name: string; typeName: string }>;
    rows: Value[][];
    truncated: boolean;
  }

  export interface Executed {
    rowsAffected: Integer;
    returned: Rows;
  }

  export interface Transaction {
    query(statement: string, parameters: Value[]): Rows;
    execute(statement: string, parameters: Value[]): Executed;
    commit(): void;
    rollback(): void;
  }

  export function query(database: string, statement: string, parameters: Value[]): Rows;
  export function execute(database: string, statement: string, parameters: Value[]): Executed;
  export function begin(database: string): Transaction;
  export function dialect(database: string): string;
}

declare module "wattle:plugin/clock@0.1.0" {
  import type { Integer, Option } from "wattle:plugin/types@0.1.0";

  export interface Civil {
    year: number;
    month: number;
    day: number;
    hour: number;
    minute: number;
    second: number;
    millisecond: number;
  }

  export interface Zoned {
    civil: Civil;
    offsetSeconds: number;
    weekday: number;
    zone: string;
  }

  export function now(): Integer;
  export function monotonic(): Integer;
  export function timeZone(): string;
  export function toZone(unixMs: Integer, zone: Option<string>): Zoned;
  export function fromZone(civil: Civil, zone: Option<string>): Integer;
}

declare module "wattle:plugin/random@0.1.0" {
  export function bytes(length: number): Uint8Array;
}

declare module "wattle:plugin/interrupt@0.1.0" {
  import type { Extra, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface Question {
    payload: Json;
    responseSchema: Option<Json>;
    extra: Extra;
  }

  export function ask(question: Question): Json;
}

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

declare module "wattle:plugin/memory@0.1.0" {
  import type { Extra, Integer, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface Item {
    namespace: string[];
    key: string;
    value: Json;
    createdMs: Integer;
    updatedMs: Integer;
    score?: Option<number>;
  }

  export interface SearchRequest {
    prefix: string[];
    filter: Option<Json>;
    query: Option<string>;
    limit: number;
    offset: number;
    extra: Extra;
  }

  export function get(namespace: string[], key: string): Option<Item>;
  export function put(namespace: string[], key: string, value: Json, ttlMs: Option<Integer>): void;
  export function putWith(
    namespace: string[],
    key: string,
    value: Json,
    ttlMs: Option<Integer>,
    extra: Extra,
  ): void;
  function remove(namespace: string[], key: string): void;

  export { remove as delete };
  export function search(request: SearchRequest): Item[];
  export function listNamespaces(
    prefix: string[],
    maxDepth: Option<number>,
    limit: number,
    offset: number,
  ): string[][];
}

declare module "wattle:plugin/blob@0.1.0" {
  import type { BlobRef, Integer, Option } from "wattle:plugin/types@0.1.0";

  export interface Info {
    blob: BlobRef;
    size: Integer;
    mediaType: string;
  }

  export function put(bytes: Uint8Array, mediaType: string): BlobRef;
  export function get(blob: BlobRef, offset: Integer, length: Option<Integer>): Uint8Array;
  export function link(blob: BlobRef): string;
  export function stat(blob: BlobRef): Info;
}

declare module "wattle:plugin/emit@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function custom(name: string, data: Json): void;
  export function progress(message: string, fraction: Option<number>): void;
}

declare module "wattle:plugin/log@0.1.0" {
  import type { Json } from "wattle:plugin/types@0.1.0";

  export type Level =
    | { tag: "trace" }
    | { tag: "debug" }
    | { tag: "info" }
    | { tag: "warn" }
    | { tag: "error" }
    | { tag: "other"; val: string };

  export function write(level: Level, message: string, fields: Array<[string, Json]>): void;
}

declare module "wattle:plugin/settings@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function get(name: string): Option<Json>;
  export function all(): Json;
}

declare module "wattle:plugin/tenants@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function setRoute(route: string, config: Json): void;
  export function getRoute(route: string): Option<Json>;
  export function removeRoute(route: string): void;
}

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
