// Conversations: messages of the AI SDK.

export * as ui from "./ui/index.ts";
