// Messages and their parts.

import type * as raw from "wattle:plugin/types@0.1.0";
import type { Image, Message, Part } from "../message.ts";
import { extra, rawExtra, text, value } from "./convert.ts";

const ROLES = ["system", "user", "assistant", "tool"] as const;

export function rawMessage(message: Message): raw.Message {
  const { role, parts } = message;
  const known = ROLES.find((it) => it === role);
  const tag: raw.Role = known === undefined ? { tag: "other", val: role } : { tag: known };
  return { role: tag, parts: parts.map(rawPart), extra: rawExtra(message.extra) };
}

export function rawPart(part: Part): raw.Part {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { tag: part.type, val: part.text };
    case "image":
      return { tag: "image", val: rawImage(part) };
    case "tool_call": {
      const { id, name } = part;
      const args = text(part.arguments);
      return { tag: "tool-call", val: { id, name, arguments: args, extra: rawExtra(part.extra) } };
    }
    case "tool_result": {
      const { callId, content, isError } = part;
      return { tag: "tool-result", val: { callId, content, isError, extra: rawExtra(part.extra) } };
    }
    case "other":
      return { tag: "other", val: text(part.value) };
  }
}

function rawImage({ source, mediaType, ...image }: Image): raw.Image {
  const tagged = (): raw.Image["source"] => {
    if (source.type === "blob") return { tag: "blob", val: source.blob };
    if (source.type === "url") return { tag: "url", val: source.url };
    return { tag: "other", val: source.value };
  };
  return { source: tagged(), mediaType, extra: rawExtra(image.extra) };
}

export function part(part: raw.Part): Part {
  switch (part.tag) {
    case "text":
    case "reasoning":
      return { type: part.tag, text: part.val };
    case "image":
      return image(part.val);
    case "tool-call": {
      const { id, name } = part.val;
      const args = value(part.val.arguments);
      return { type: "tool_call", id, name, arguments: args, extra: extra(part.val.extra) };
    }
    case "tool-result": {
      const { callId, content, isError } = part.val;
      return { type: "tool_result", callId, content, isError, extra: extra(part.val.extra) };
    }
    case "other":
      return { type: "other", value: value(part.val) };
  }
}

function image({ source, mediaType, ...image }: raw.Image): Image {
  const typed = (): Image["source"] => {
    if (source.tag === "blob") return { type: "blob", blob: source.val };
    if (source.tag === "url") return { type: "url", url: source.val };
    return { type: "other", value: source.val };
  };
  return { type: "image", source: typed(), mediaType, extra: extra(image.extra) };
}
