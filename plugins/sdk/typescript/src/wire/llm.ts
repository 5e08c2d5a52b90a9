// Calls of `llm`.

import * as raw from "wattle:plugin/llm@0.1.0";
import type { Result } from "../failure.ts";
import {
  Completion,
  GeneratedImage,
  type ImageRequest,
  type Request,
  RouteInfo,
  type StreamEvent,
  type StreamHandle,
  type ToolChoice,
} from "../llm/index.ts";
import { call, extra, option, rawExtra, rawOption, result, same, text, value } from "./convert.ts";
import { part, rawMessage } from "./message.ts";

export function complete(request: Request): Completion {
  return completion(call(() => raw.complete(rawRequest(request))));
}

export function completeAll(requests: readonly Request[]): Array<Result<Completion>> {
  return raw.completeAll(requests.map(rawRequest)).map((it) => result(it, completion));
}

export function stream(request: Request): StreamHandle {
  const resource = call(() => raw.stream(rawRequest(request)));
  return {
    next: () => call(() => resource.next()).map(streamEvent),
    finish: () => completion(call(() => resource.finish())),
    close: () => resource[Symbol.dispose]?.(),
  };
}

export function route(name: string): RouteInfo {
  const info = call(() => raw.route(name));
  return new RouteInfo({ ...info, extra: extra(info.extra) });
}

export function generateImages(request: ImageRequest): GeneratedImage[] {
  const { route, prompt, count } = request;
  const aspectRatio = rawOption(request.aspectRatio, same);
  const own = rawExtra(request.extra);
  const images = call(() => raw.generateImages({ route, prompt, count, aspectRatio, extra: own }));
  return images.map((image) => new GeneratedImage({ ...image, extra: extra(image.extra) }));
}

function rawRequest(request: Request): raw.Request {
  return {
    route: request.route,
    messages: request.messages.map(rawMessage),
    tools: request.tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      argumentsSchema: text(tool.argumentsSchema),
      extra: rawExtra(tool.extra),
    })),
    toolChoice: rawChoice(request.toolChoice),
    responseSchema: rawOption(request.responseSchema, ({ name, schema }) => {
      return { name, schema: text(schema) };
    }),
    temperature: rawOption(request.temperature, same),
    maxOutputTokens: rawOption(request.maxOutputTokens, same),
    seed: rawOption(request.seed, same),
    stop: request.stop,
    extra: rawExtra(request.extra),
  };
}

function rawChoice(choice: ToolChoice): raw.ToolChoice {
  return typeof choice === "string" ? { tag: choice } : { tag: "tool", val: choice.tool };
}

function completion(completion: raw.Completion): Completion {
  const { finishReason: reason, usage } = completion;
  return new Completion({
    parts: completion.parts.map(part),
    structured: option(completion.structured, value),
    finishReason: reason.tag === "other" ? reason.val : reason.tag,
    usage: {
      inputTokens: option(usage.inputTokens, Number),
      outputTokens: option(usage.outputTokens, Number),
      cachedInputTokens: option(usage.cachedInputTokens, Number),
      reasoningTokens: option(usage.reasoningTokens, Number),
      extra: extra(usage.extra),
    },
    model: completion.model,
    extra: extra(completion.extra),
  });
}

function streamEvent(event: raw.StreamEvent): StreamEvent {
  switch (event.tag) {
    case "text":
    case "reasoning":
      return { type: event.tag, text: event.val };
    case "tool-call-delta": {
      const [index, name, args] = event.val;
      return { type: "tool_call_delta", index, name: option(name, same), arguments: args };
    }
    case "other": {
      const other = value(event.val);
      const { kind } = (other ?? {}) as { kind?: unknown };
      return kind === "restart" ? { type: "restart" } : { type: "other", value: other };
    }
  }
}
