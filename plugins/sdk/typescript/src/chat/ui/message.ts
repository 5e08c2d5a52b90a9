// Messages of the AI SDK with their parts as JSON.

import type { Json } from "../../json.ts";
import { partOf } from "./client.ts";

/** The sender of a message: the service, the person, or the model with the tools it called. */
export type Role = "system" | "user" | "assistant";

/** A message of the AI SDK. */
export class UiMessage {
  /** Unique in its conversation. */
  readonly id: string;
  /** The sender. */
  readonly role: Role;
  /** Text, reasoning, files and tool calls, in order. */
  readonly parts: Json[];

  /** Creates a message. */
  constructor(id: string, role: Role, parts: Json[]) {
    this.id = id;
    this.role = role;
    this.parts = parts;
  }

  /**
   * Returns the text parts, one a line.
   *
   * ```ts
   * import { chat } from "wattle-plugin";
   *
   * const parts = [{ type: "step-start" }, { type: "text", text: "hello" }];
   * assert.equal(new chat.ui.UiMessage("m", "assistant", parts).text(), "hello");
   * ```
   */
  text(): string {
    const parts = this.parts.map(partOf);
    return parts.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n");
  }
}
