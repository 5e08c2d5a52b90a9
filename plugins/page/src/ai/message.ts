// Messages of the AI SDK.

/** The fields of a message that are used here. */
interface Message {
  role: string;
  parts: readonly { type: string; text?: unknown }[];
}

/** Returns the text of a message, without its other parts. */
export function textOf({ parts }: Message): string {
  return parts.map(({ type, text }) => (type === "text" ? text : "")).join("");
}

/** Returns the messages without the last one, if that is this text of the user. */
export function withoutLast<M extends Message>(messages: M[], text: string): M[] {
  const last = messages.at(-1);
  return last?.role === "user" && textOf(last) === text ? messages.slice(0, -1) : messages;
}
