// Messages of conversations: roles, parts, images and tool calls.

import type { BlobRef } from "./blob.ts";
import * as blob from "./blob.ts";
import type { Extra, Json } from "./json.ts";

/** The author of a message. Another text is a role unknown to this SDK version. */
export type Role = "system" | "user" | "assistant" | "tool" | (string & {});

/** Location of the data of an image. */
export type ImageSource =
  /** A blob that contains the data. */
  | { type: "blob"; blob: BlobRef }
  /** A URL at which the provider of the model can fetch the data. */
  | { type: "url"; url: string }
  /** A location unknown to this SDK version. */
  | { type: "other"; value: string };

/** An image in a message. */
export interface Image {
  /** Kind of the part. */
  type: "image";
  /** Location of the data. */
  source: ImageSource;
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** Extension fields. */
  extra?: Extra;
}

/** A tool call that a model requests. */
export interface ToolCall {
  /** Kind of the part. */
  type: "tool_call";
  /** Id of the call, which its result must contain. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Arguments as JSON. */
  arguments: Json;
  /** Extension fields. */
  extra?: Extra;
}

/** The result of a tool call. */
export interface ToolResult {
  /** Kind of the part. */
  type: "tool_result";
  /** Id of the call to which the result belongs. */
  callId: string;
  /** Content for the model. */
  content: string;
  /** True if the tool failed. */
  isError: boolean;
  /** Extension fields. */
  extra?: Extra;
}

/** Value of `type` in a part of another kind with opaque data of the provider, such as signatures. */
export const PROVIDER_STATE = "provider_state";

/** A part of a message. */
export type Part =
  /** Text. */
  | { type: "text"; text: string }
  | Image
  | ToolCall
  | ToolResult
  /** Reasoning of the model. The host sends it back to providers that require it. */
  | { type: "reasoning"; text: string }
  /**
   * A kind unknown to this SDK version. A part whose value has the type {@link PROVIDER_STATE} is
   * sent back to the provider unchanged, together with the message that contained it.
   */
  | { type: "other"; value: Json };

/** Makes a text a part. */
export function toPart(part: Part | string): Part {
  return typeof part === "string" ? { type: "text", text: part } : part;
}

/** A message of a conversation. */
export class Message {
  /** Author of the message. */
  readonly role: Role;
  /** Content in order. */
  readonly parts: Part[];
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a message. A text is a text part. */
  constructor(role: Role, parts: Part | string | ReadonlyArray<Part | string>, extra: Extra = {}) {
    this.role = role;
    this.parts = (Array.isArray(parts) ? parts : [parts]).map(toPart);
    this.extra = extra;
  }

  /** Creates a message with instructions to the model. */
  static system(text: string): Message {
    return new Message("system", text);
  }

  /** Creates a message of a person. */
  static user(...parts: Array<Part | string>): Message {
    return new Message("user", parts);
  }

  /** Creates a message of the model. */
  static assistant(...parts: Array<Part | string>): Message {
    return new Message("assistant", parts);
  }

  /** Creates a message with the result of a tool call. */
  static toolResult(callId: string, content: string, isError = false): Message {
    return new Message("tool", { type: "tool_result", callId, content, isError });
  }

  /** Returns all text parts, joined. */
  text(): string {
    return textsOf(this.parts).join("");
  }
}

/** Creates images. */
export const Image = {
  /** Creates an image from a blob. */
  blob(blob: BlobRef, mediaType: string): Image {
    return { type: "image", source: { type: "blob", blob }, mediaType };
  },

  /** Creates an image from a URL that the provider of the model can reach. */
  url(url: string, mediaType: string): Image {
    return { type: "image", source: { type: "url", url }, mediaType };
  },

  /**
   * Creates an image from a data URL. Stores its data as a blob.
   *
   * ```ts
   * import { Image } from "wattle-plugin";
   * import { FakeHost } from "wattle-plugin/testing";
   *
   * new FakeHost().run(() => {
   *   const image = Image.dataUrl("data:image/png;base64,iVBORw==");
   *   assert.equal(image.mediaType, "image/png");
   * });
   * ```
   */
  dataUrl(url: string): Image {
    const { bytes, mediaType } = blob.parseDataUrl(url);
    return Image.blob(blob.put(bytes, mediaType), mediaType);
  },
};

/** Returns all text parts. */
export function textsOf(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
}
