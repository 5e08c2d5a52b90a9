// Implements `llm` with the script.

import { Failure, type Result } from "../../failure.ts";
import { CALL_IDS } from "../../llm/completion.ts";
import { HISTORY } from "../../llm/history.ts";
import {
  Completion,
  GeneratedImage,
  type ImageRequest,
  type Request,
  type RouteInfo,
  type StreamEvent,
  type StreamHandle,
} from "../../llm/index.ts";
import type { Part } from "../../message.ts";
import { current, each, play } from "../state.ts";
import * as blob from "./blob.ts";

export function complete(request: Request): Completion {
  const state = current();
  state.notes.llm.push(request);
  const completion = play(state.llm, request, "FakeHost.llm");
  return request.extra[HISTORY] === undefined ? completion : withCallIds(completion);
}

/**
 * Adds the ids of the tool calls to the completion of a request with a history, unless the script sets
 * others.
 */
function withCallIds(completion: Completion): Completion {
  const ids = completion.toolCalls().map(({ id }) => id);
  if (ids.length === 0) return completion;
  return new Completion({ ...completion, extra: { [CALL_IDS]: ids, ...completion.extra } });
}

export function completeAll(requests: readonly Request[]): Array<Result<Completion>> {
  return each(requests, complete);
}

/** Streams a completion whose deltas have one word each. All deltas are available immediately. */
export function stream(request: Request): StreamHandle {
  const completion = complete(request);
  let deltas = deltasOf(completion.parts);
  return {
    next: () => {
      const ready = deltas;
      deltas = [];
      return ready;
    },
    finish: () => completion,
    close: () => {},
  };
}

function deltasOf(parts: readonly Part[]): StreamEvent[] {
  let index = 0;
  return parts.flatMap((part): StreamEvent[] => {
    if (part.type === "text" || part.type === "reasoning") {
      const words = part.text.match(/[^ ]* |[^ ]+$/g) ?? [];
      return words.map((text) => ({ type: part.type, text }));
    }
    if (part.type !== "tool_call") return [];
    const args = JSON.stringify(part.arguments);
    return [{ type: "tool_call_delta", index: index++, name: part.name, arguments: args }];
  });
}

export function route(name: string): RouteInfo {
  const found = current().routes.get(name);
  if (found !== undefined) return found;
  throw Failure.notFound(`there is no route \`${name}\`; add it with \`FakeHost.route\``);
}

export function generateImages(request: ImageRequest): GeneratedImage[] {
  const state = current();
  const pictures = play(state.images, request, "FakeHost.images");
  state.notes.images.push(request);
  return pictures.map(({ bytes, mediaType }) => {
    const stored = blob.put(bytes, mediaType);
    const extra = { link: blob.link(stored), provider: "fake", model: request.route };
    return new GeneratedImage({ blob: stored, mediaType, extra });
  });
}
