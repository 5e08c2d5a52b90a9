// Messages of a request, checked and reduced to what an app stores.

import type { Failure } from "../../failure.ts";
import { type Extra, fieldsOf, type Json } from "../../json.ts";
import { refuse } from "../../web/respond.ts";
import { status } from "../../web/status.ts";
import { trimmed } from "../../whitespace.ts";
import { isLonger } from "../chars.ts";
import { partOf } from "./client.ts";
import { type Role, UiMessage } from "./message.ts";

/** Maximum number of characters of an id. Ids of clients have about twenty. */
const ID_CHARS = 200;

const ROLES: readonly Json[] = ["system", "user", "assistant"] satisfies Role[];

/** Limits of the messages that a client sends. */
export interface Limits {
  /** Maximum number of messages. */
  messages: number;
  /** Maximum number of parts of a message. */
  parts: number;
  /** Maximum number of characters of a message of the user. */
  textChars: number;
}

/**
 * Reads the messages of a request, for an app whose page sends the whole conversation each time, as
 * `useChat` does. The last one must be a text of the user, because the run replies to it.
 *
 * Files are reduced to their names, and unknown parts are left out. `output` returns the output of a
 * tool call as the app stores it: a client can send one of any length.
 *
 * ```ts
 * import { chat } from "wattle-plugin";
 *
 * const LIMITS: chat.ui.Limits = { messages: 100, parts: 100, textChars: 4_000 };
 *
 * const file = { type: "file", filename: "a.png", mediaType: "image/png" };
 * const parts = [{ type: "text", text: "what is this?" }, { ...file, url: "data:..." }];
 * const messages = chat.ui.read([{ id: "u", role: "user", parts }], LIMITS, (output) => output);
 * assert.deepEqual(messages[0]?.parts[1], file);
 * assert.throws(() => chat.ui.read([], LIMITS, (output) => output), { code: "invalid" });
 * ```
 *
 * @throws A failure with status 400 and a message for the sender.
 */
export function read(
  messages: Json | undefined,
  limits: Limits,
  output: (output: Json) => Json,
): UiMessage[] {
  if (!Array.isArray(messages)) throw refused("`messages` must be a list of messages");
  if (messages.length > limits.messages) {
    throw refused(`a conversation has at most ${limits.messages} messages; begin a new one`);
  }
  const read = messages.map((message, index) => one(message, index, limits, output));
  if (new Set(read.map(({ id }) => id)).size < read.length) {
    throw refused("two messages have the same id");
  }
  const last = read.at(-1);
  if (last?.role !== "user" || trimmed(last.text()) === "") {
    throw refused("the last message must be a text of the user");
  }
  return read;
}

function one(
  message: Json,
  index: number,
  limits: Limits,
  output: (output: Json) => Json,
): UiMessage {
  const unfit = (why: string) => refused(`message ${index + 1}: ${why}`);
  const wrong = mistakeIn(message);
  if (wrong !== undefined) throw unfit(`it is no message of a chat page: ${wrong}`);
  const { id: sent, role, parts: all = [], content } = fieldsOf(message);
  const id = (sent as string | null | undefined) || `message-${index}`;
  if (isLonger(id, ID_CHARS) || id.includes("\0")) {
    throw unfit(`its id is longer than ${ID_CHARS} characters, or has a NUL`);
  }
  if ((all as Json[]).length > limits.parts) throw unfit(`it has more than ${limits.parts} parts`);
  const parts = (all as Json[]).flatMap((part) => kept(part, output));
  // Older clients send it instead of parts.
  if (parts.length === 0 && typeof content === "string") {
    parts.push({ type: "text", text: content });
  }
  const read = new UiMessage(id, role as Role, parts);
  if (read.role === "user" && isLonger(read.text(), limits.textChars)) {
    throw unfit(`it is longer than ${limits.textChars} characters; say it in fewer`);
  }
  return read;
}

/** Returns a part as it is stored: a file by its name, and no unknown part. */
function kept(json: Json, output: (output: Json) => Json): Json[] {
  const part = partOf(json);
  const fields = fieldsOf(json);
  if (part.type === "other") return [];
  if (part.type === "file") {
    const { mediaType } = fields;
    const known = typeof mediaType === "string" ? mediaType : "application/octet-stream";
    return [{ type: "file", filename: part.name, mediaType: known }];
  }
  if (part.type !== "tool" || fields.output === undefined) return [json];
  return [{ ...fields, output: output(fields.output) }];
}

/** Says why a value is no message, in the words of the other SDKs. */
function mistakeIn(message: Json): string | undefined {
  if (message === null || typeof message !== "object" || Array.isArray(message)) {
    return `invalid type: ${kindOf(message)}, expected struct Raw`;
  }
  const { id = null, parts = [], role }: Extra = message;
  if (id !== null && typeof id !== "string") {
    return `invalid type: ${kindOf(id)}, expected a string`;
  }
  if (!Array.isArray(parts)) return `invalid type: ${kindOf(parts)}, expected a sequence`;
  if (role === undefined) return "missing field `role`";
  if (typeof role !== "string") return `invalid type: ${kindOf(role)}, expected string or map`;
  if (ROLES.includes(role)) return undefined;
  return `unknown variant \`${role}\`, expected one of \`${ROLES.join("`, `")}\``;
}

function kindOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "sequence";
  if (typeof value === "object") return "map";
  if (typeof value === "string") return `string ${JSON.stringify(value)}`;
  if (typeof value === "boolean") return `boolean \`${value}\``;
  return Number.isInteger(value) ? `integer \`${value}\`` : `floating point \`${value}\``;
}

function refused(why: string): Failure {
  return refuse(status.BAD_REQUEST, why);
}
