// Conversations as endpoints: messages, replies and streams.

export { Agent, type AgentNames } from "./agent.ts";
export { Chat, type ChatOptions } from "./chat.ts";
export {
  AnswerRequest,
  ChatError,
  ChatRequest,
  Reply,
  ThreadDocument,
  type ThreadEntry,
  ThreadList,
  TitleRequest,
  Waiting,
} from "./documents.ts";
export type { Ended, Question } from "./ended.ts";
export { type Endpoints, endpoints } from "./endpoints.ts";
export type { LastReply, ReplyStep } from "./last-reply.ts";
export type { Step, StepStatus, Write } from "./steps.ts";
export type { StoredCall } from "./stored.ts";
export { ENGLISH, type Texts } from "./texts.ts";
export * as ui from "./ui/index.ts";
