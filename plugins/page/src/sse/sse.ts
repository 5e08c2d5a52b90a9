// Server-sent events in the response to a request.
import { createParser } from "eventsource-parser";
import { ApiError, failureOf, send } from "../api/index.ts";
import { texts } from "../language/language.ts";

export interface ServerEvent {
  /** Name of the event; `message` if it has none. */
  event: string;
  data: string;
}

/**
 * Returns an event with its data as a JSON document. `E` is the type of the stream in the OpenAPI
 * document of the app.
 */
export function jsonEvent<E extends { event: string; data: unknown }>(shown: ServerEvent): E {
  return { event: shown.event, data: JSON.parse(shown.data) } as E;
}

export interface StreamOptions {
  /** Sent as JSON. */
  body: unknown;
  /** Called when the server has accepted the request. */
  onOpen?: () => void;
  onEvent: (event: ServerEvent) => void;
  /** Returns true for the last event. */
  isEnd: (event: ServerEvent) => boolean;
}

/**
 * Sends a POST and reads the events of its response. Resolves at the last event. Fails if the
 * request is refused or the connection is cut; a POST is not sent again, because it would act twice.
 */
export async function streamEvents(path: string, options: StreamOptions): Promise<void> {
  const { body, onOpen, onEvent, isEnd } = options;
  const response = await send(path, { body, headers: { accept: "text/event-stream" } });
  onOpen?.();
  let hasEnded = false;
  const parser = createParser({
    onEvent: ({ event: name = "message", data }) => {
      const event = { event: name, data };
      hasEnded ||= isEnd(event);
      onEvent(event);
    },
  });
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  while (!hasEnded) {
    const chunk = await reader?.read().catch((error: unknown) => {
      throw failureOf(error, texts().streamCut);
    });
    if (chunk?.value === undefined) throw new ApiError("network", texts().streamCut);
    parser.feed(decoder.decode(chunk.value, { stream: true }));
  }
  await reader?.cancel();
}
