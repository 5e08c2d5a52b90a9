// The messages of a conversation, as the state of a thread has them. They are data of a stranger;
// what is not valid in them is left out.

/** A tool call that a model asks for. */
export interface Ask {
  id: string;
  name: string;
  arguments: unknown;
}

export interface Message {
  role: "user" | "assistant" | "system" | "tool";
  text: string;
  /** Parts that are not text. */
  others: readonly unknown[];
  asks: readonly Ask[];
  /** Name of the tool whose output the message is. */
  tool: string | undefined;
}

/** Messages that are shown. The view of the state shows all of them. */
export const SHOWN_MESSAGES = 500;

/** Roles by the names that clients and models use. */
const ROLES = new Map<unknown, Message["role"]>([
  ["user", "user"],
  ["human", "user"],
  ["assistant", "assistant"],
  ["ai", "assistant"],
  ["system", "system"],
  ["developer", "system"],
  ["tool", "tool"],
]);

/** Returns the newest messages in a state. */
export function messagesIn(state: unknown, channel: string): Message[] {
  const value: unknown = Object(state)[channel];
  if (!Array.isArray(value)) return [];
  return value.slice(-SHOWN_MESSAGES).map(messageOf);
}

type Fields = Readonly<Record<string, unknown>>;

function messageOf(value: unknown): Message {
  const { role, type, content, tool_calls, name }: Fields = Object(value);
  const parts = typeof content === "string" ? [content] : listOf(content);
  const texts = parts.map(textOf);
  return {
    role: ROLES.get(role ?? type) ?? "assistant",
    text: texts.filter((text) => text !== undefined).join("\n"),
    others: parts.filter((_, index) => texts[index] === undefined),
    asks: listOf(tool_calls).map(askOf),
    tool: typeof name === "string" ? name : undefined,
  };
}

function textOf(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  const { text }: Fields = Object(part);
  return typeof text === "string" ? text : undefined;
}

/** Returns a tool call, in the form of the host or in that of OpenAI. */
function askOf(value: unknown, index: number): Ask {
  const { id, name, arguments: given, args, function: inner }: Fields = Object(value);
  const { name: innerName, arguments: innerGiven }: Fields = Object(inner);
  return {
    id: `${textIn(id)}-${index}`,
    name: textIn(name ?? innerName),
    arguments: given ?? args ?? innerGiven,
  };
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
