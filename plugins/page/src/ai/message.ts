// Messages of the AI SDK.
import type { UIMessage } from "ai";

/** The fields of a message that are used here. */
interface Message {
  role: string;
  parts: readonly { type: string; text?: unknown }[];
}

/** Returns the text of a message, without its other parts. */
export function textOf({ parts }: Message): string {
  return parts.map(({ type, text }) => (type === "text" ? text : "")).join("");
}

/** Returns the texts of the messages of the user. */
export function userTexts(messages: readonly Message[]): string[] {
  return messages.filter(({ role }) => role === "user").map(textOf);
}

/** Returns the messages without the last one, if that is this text of the user. */
export function withoutLast<M extends Message>(messages: M[], text: string): M[] {
  const last = messages.at(-1);
  return last?.role === "user" && textOf(last) === text ? messages.slice(0, -1) : messages;
}

/**
 * Returns true if both have the same content. Ids are ignored, because streamed messages have other
 * ids than stored ones.
 */
export function isSame(one: readonly UIMessage[], other: readonly UIMessage[]): boolean {
  const content = (messages: readonly UIMessage[]) =>
    JSON.stringify(messages.map((message) => [message.role, textOf(message), calls(message)]));
  return content(one) === content(other);
}

function calls(message: UIMessage): unknown[] {
  return message.parts.map((part) =>
    "toolCallId" in part ? [part.toolCallId, "state" in part ? part.state : undefined] : [],
  );
}
