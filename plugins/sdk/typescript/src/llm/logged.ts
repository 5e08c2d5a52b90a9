// Completions in the log of a thread, which have the JSON of the host.

import { Failure } from "../failure.ts";
import type { Extra, Json } from "../json.ts";
import type { ImageSource, Part } from "../message.ts";
import { Completion, type FinishReason, type Usage } from "./completion.ts";

/** Finish reasons of the host, and those of {@link Completion}. */
const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter",
};

/**
 * Converts a completion from JSON.
 *
 * @throws `invalid` if the value is not a completion.
 */
export function readCompletion(output: Json): Completion {
  const {
    parts = [],
    structured = null,
    finish_reason: reason = "stop",
    usage = {},
    model = "",
    ...extra
  } = object(output);
  if (!Array.isArray(parts)) throw invalid(parts);
  return new Completion({
    parts: parts.map(readPart),
    structured: structured ?? undefined,
    finishReason: readReason(reason),
    usage: readUsage(object(usage)),
    model: text(model),
    extra,
  });
}

function readPart(part: Json): Part {
  const [kind, value] = variant(part);
  switch (kind) {
    case "text":
    case "reasoning":
      return { type: kind, text: text(value) };
    case "image": {
      const { source, media_type: mediaType, extra = {} } = object(value);
      const image = { source: readSource(source), mediaType: text(mediaType) };
      return { type: kind, ...image, extra: object(extra) };
    }
    case "tool_call": {
      const { id, name, arguments: args = null, extra = {} } = object(value);
      return { type: kind, id: text(id), name: text(name), arguments: args, extra: object(extra) };
    }
    case "tool_result": {
      const { call_id: callId, content, is_error: isError = false, extra = {} } = object(value);
      const result = { callId: text(callId), content: text(content), isError: isError === true };
      return { type: kind, ...result, extra: object(extra) };
    }
    case "other":
      return { type: kind, value };
    default:
      throw invalid(part);
  }
}

function readSource(source: Json | undefined): ImageSource {
  const [kind, value] = variant(source);
  if (kind === "blob") return { type: kind, blob: text(value) };
  if (kind === "url") return { type: kind, url: text(value) };
  if (kind === "other") return { type: kind, value: text(value) };
  throw invalid(source);
}

function readReason(reason: Json): FinishReason {
  if (typeof reason !== "string") return text(object(reason).other);
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
  if (known === undefined) throw invalid(reason);
  return known;
}

function readUsage(usage: Extra): Usage {
  const { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, ...extra } = usage;
  return {
    inputTokens: count(input_tokens),
    outputTokens: count(output_tokens),
    cachedInputTokens: count(cached_input_tokens),
    reasoningTokens: count(reasoning_tokens),
    extra,
  };
}

/** Returns the only field of an object, its name first. */
function variant(value: Json | undefined): [kind: string, value: Json] {
  const [field, ...more] = Object.entries(object(value));
  if (field === undefined || more.length > 0) throw invalid(value);
  return field;
}

function object(value: Json | undefined): Extra {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalid(value);
}

function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  throw invalid(value);
}

function count(value: Json | undefined): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number") return value;
  throw invalid(value);
}

function invalid(value: Json | undefined): Failure {
  return Failure.invalid(`no part of a completion: ${JSON.stringify(value)}`);
}
