// The types of requests and responses of conversations.

import * as z from "zod/mini";
import { withMetadata } from "../metadata.ts";
import type { Question } from "./ended.ts";
import type { UiMessage } from "./ui/message.ts";

/** Gives a type a name and a description in OpenAPI documents. */
function named<T extends z.ZodMiniType>(id: string, description: string, type: T): T {
  return withMetadata(type, { id, description });
}

/** Describes a field. */
function described<T extends z.ZodMiniType>(description: string, type: T): T {
  return withMetadata(type, { description });
}

const Call = named(
  "ToolCall",
  "A tool call that a model requests.",
  z.object({
    id: described("Id of the call, which its result must contain.", z.string()),
    name: described("Name of the tool.", z.string()),
    arguments: described("Arguments as JSON.", z.unknown()),
  }),
);

const Step = named(
  "Step",
  "A step that led to a reply.",
  z.discriminatedUnion("type", [
    described(
      "A model turn: its text and the tool calls that it requested.",
      z.object({ type: z.literal("model"), content: z.string(), toolCalls: z.array(Call) }),
    ),
    described(
      "A tool call: its arguments and its result.",
      z.object({
        type: z.literal("tool"),
        callId: z.string(),
        tool: z.string(),
        arguments: z.unknown(),
        status: z.string(),
        result: z.unknown(),
      }),
    ),
  ]),
);

const QuestionDocument = named(
  "Question",
  "A tool call that waits for approval.",
  z.object({
    id: z.string(),
    payload: z.unknown(),
    responseSchema: described(
      "JSON Schema for the answer; absent if the interrupt has none.",
      z.optional(z.unknown()),
    ),
  }),
);

const Part = named(
  "UiPart",
  "A part of a message of the AI SDK: the start of a model turn, a text, or a tool call.",
  z.object({
    type: described(
      "`step-start`, `text`, `reasoning`, or `tool-` and the name of the tool.",
      z.string(),
    ),
    text: z.optional(z.string()),
    toolCallId: z.optional(z.string()),
    input: z.optional(z.unknown()),
    state: z.optional(
      named(
        "UiState",
        "The state of a text of the assistant, or of a tool call.",
        z.enum(["done", "input-available", "output-available", "output-error"]),
      ),
    ),
    output: z.optional(z.unknown()),
    errorText: z.optional(z.string()),
  }),
);

const Message = named(
  "UiMessage",
  "A message of the AI SDK.",
  z.object({
    id: described("Unique in its conversation.", z.string()),
    role: named("Role", "The sender of a message.", z.enum(["system", "user", "assistant"])),
    parts: described("Text, reasoning, files and tool calls, in order.", z.array(Part)),
  }),
);

/** A message, or the request to reply to the last message again (`retry`). */
export const ChatRequest = named(
  "ChatRequest",
  "A message, or the request to reply to the last message again (`retry`).",
  z.object({
    threadId: described(
      "Conversation of the message; a new one without it.",
      z._default(z.nullable(z.string()), null),
    ),
    message: z._default(z.string(), ""),
    retry: described(
      "Requests a reply to the last message after a failed run, in place of a new message.",
      z._default(z.boolean(), false),
    ),
  }),
);

/** The reply to a message. */
export const Reply = named(
  "Reply",
  "The reply to a message.",
  z.object({ threadId: z.string(), reply: z.string(), steps: z.array(Step) }),
);

/** A run that waits for approvals. */
export const Waiting = named(
  "Waiting",
  "A run that waits for approvals.",
  z.object({
    threadId: z.string(),
    reply: z.string(),
    questions: z.array(QuestionDocument),
    steps: z.array(Step),
  }),
);

/** The reason of a refused request or a failed run, for users. */
export const ChatError = named(
  "ChatError",
  "The reason of a refused request or a failed run, for users.",
  z.object({
    threadId: described(
      "The conversation of a failed run. Its next message continues it.",
      z.optional(z.string()),
    ),
    error: z.string(),
    steps: described("The steps of a failed run.", z.optional(z.array(Step))),
  }),
);

/** The answer to a question of a conversation. */
export const AnswerRequest = named(
  "AnswerRequest",
  "The answer to a question of a conversation.",
  z.object({
    id: described("Id of the question.", z.string()),
    answer: described(
      'For an approval of the plugin `std` the decision, such as `{"decision": "approve"}`.',
      z.unknown().check(z.refine((answer) => answer !== undefined)),
    ),
  }),
);

/** A conversation. */
export const ThreadDocument = named(
  "ThreadDocument",
  "A conversation.",
  z.object({
    threadId: z.string(),
    status: described("`running` during a run.", z.string()),
    messages: z.array(Message),
    questions: described(
      "Pending questions; absent if there are none.",
      z.optional(z.array(QuestionDocument)),
    ),
  }),
);

const Entry = named(
  "ThreadEntry",
  "A conversation in a list.",
  z.object({
    threadId: z.string(),
    title: described("Null for a conversation without a title.", z.nullable(z.string())),
    status: described("`running` during a run.", z.string()),
    createdMs: described("Time of creation, in milliseconds since 1970.", z.int()),
    updatedMs: described("Time of the last update, in milliseconds since 1970.", z.int()),
  }),
);

/** A page of the list of conversations. */
export const ThreadList = named(
  "ThreadList",
  "A page of the list of conversations.",
  z.object({
    threads: described("The conversations, newest update first.", z.array(Entry)),
    next: described(
      "Value of `after` for the next page; null at the end of the list. A page may be short or " +
        "empty although another one follows.",
      z.nullable(z.string()),
    ),
  }),
);

/** A new title of a conversation. */
export const TitleRequest = named(
  "TitleRequest",
  "A new title of a conversation.",
  z.object({ title: z.string() }),
);

/** A conversation. */
export interface ThreadDocument {
  /** Id of the thread. */
  threadId: string;
  /** `running` during a run. */
  status: string;
  /** The messages in order. */
  messages: UiMessage[];
  /** Pending questions; absent if there are none. */
  questions?: Question[];
}

/** A conversation in a list. */
export interface ThreadEntry {
  /** Id of the thread. */
  threadId: string;
  /** Null for a conversation without a title. */
  title: string | null;
  /** `running` during a run. */
  status: string;
  /** Time of creation, in milliseconds since 1970. */
  createdMs: number;
  /** Time of the last update, in milliseconds since 1970. */
  updatedMs: number;
}

/** A page of the list of conversations. */
export interface ThreadList {
  /** The conversations, newest update first. */
  threads: ThreadEntry[];
  /**
   * Value of `after` for the next page; null at the end of the list. A page may be short or empty
   * although another one follows.
   */
  next: string | null;
}
