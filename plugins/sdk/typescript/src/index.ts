// The guest SDK: write Wattle plugins in TypeScript.

export type { BlobRef } from "./blob.ts";
export * as blob from "./blob.ts";
export * as chat from "./chat/index.ts";
export * as clock from "./clock.ts";
export { Context, type ContextFields, type NodeError } from "./context.ts";
export type { Conversation } from "./conversation.ts";
export * as emit from "./emit.ts";
export { code, Failure, type FailureOptions, type Result } from "./failure.ts";
export * as http from "./http.ts";
export * as interrupt from "./interrupt.ts";
export type { Extra, Json, Type } from "./json.ts";
export * as llm from "./llm/index.ts";
export * as log from "./log.ts";
export * as memory from "./memory.ts";
export {
  Image,
  type ImageSource,
  Message,
  type Part,
  PROVIDER_STATE,
  type Role,
  type ToolCall,
  type ToolResult,
} from "./message.ts";
export {
  type Empty,
  Node,
  type NodeDescription,
  type NodeEntry,
  type NodeFunction,
  node,
} from "./node.ts";
export { Decision, END, Outcome, type Send, type Update } from "./outcome.ts";
export { type Entry, type Manifest, manifest, Plugin, plugin } from "./plugin.ts";
export * as projection from "./projection/index.ts";
export * as prompt from "./prompt.ts";
export * as random from "./random.ts";
export type { ChannelRef, Reads } from "./reads.ts";
export * as redact from "./redact.ts";
export {
  Reducer,
  type ReducerDescription,
  type ReducerEntry,
  type ReducerFunction,
  reducer,
} from "./reducer.ts";
export * as runs from "./runs/index.ts";
export * as settings from "./settings.ts";
export * as sql from "./sql/index.ts";
export * as tenants from "./tenants.ts";
export {
  type ArgumentsOf,
  Tool,
  type ToolArguments,
  ToolContext,
  type ToolContextFields,
  type ToolDescription,
  type ToolEntry,
  type ToolFunction,
  type ToolHints,
  ToolInfo,
  type ToolInfoFields,
  ToolOutput,
  type ToolOutputFields,
  type ToolReturn,
  tool,
  Unchecked,
  UncheckedType,
  unchecked,
} from "./tool.ts";
export * as tools from "./tools.ts";
export {
  type EndpointTypes,
  Handler,
  type HandlerEntry,
  type HandlerFunction,
  handler,
  type Method,
} from "./web/handler.ts";
export * as web from "./web/index.ts";
export { type Pairs, Request, type RequestFields } from "./web/request.ts";
export { type Body, type HandOff, Response, type StreamFormat } from "./web/response.ts";
export { ZoneSetting } from "./zone.ts";
