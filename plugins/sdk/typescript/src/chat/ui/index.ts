// Messages of the AI SDK, for an app whose page sends the whole conversation, as `useChat` does by
// default.

export {
  CallIds,
  type Part,
  partOf,
  type ToolPart,
  type ToolResult,
  toStored,
} from "./client.ts";
export { type Role, UiMessage } from "./message.ts";
export { type Limits, read } from "./read.ts";
