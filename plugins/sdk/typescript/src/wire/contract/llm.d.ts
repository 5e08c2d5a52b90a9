// `wit/wattle/llm.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

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
