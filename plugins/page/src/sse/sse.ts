// Server-sent events in the response to a request.
import { createParser } from "eventsource-parser";
import type { Body } from "../api/endpoints.ts";
import { ApiError, failureOf, send } from "../api/index.ts";
import { texts } from "../language/language.ts";

export interface ServerEvent {
  /** Name of the event; `message` if it has none. */
  event: string;
  data: string;
}

/** A POST with a stream of `E` as response. Its path and its query have no parameters. */
interface Streaming<E> {
  parameters: { path?: never; query?: never };
  requestBody: object;
  responses: { 200: { content: { "text/event-stream": E } } };
}

/** The paths of streams. */
type StreamPath<Paths> = {
  [P in keyof Paths & string]: Paths[P] extends { post: Streaming<unknown> } ? P : never;
}[keyof Paths & string];

/** The events of the stream of a path. */
type EventOf<Path> = Path extends { post: Streaming<infer E> } ? E : never;

/** The names of events. */
type Name<E> = E["event" & keyof E] & string;

interface Reader<E> {
  /** Called when the server has accepted the request. */
  onOpen?: () => void;
  /** Called with each event, whose data is a JSON document. */
  onEvent: (event: E) => void;
  /** Names of the last events. */
  ends: readonly Name<E>[];
}

/** Sends a request and reads its events like `streamEvents`. */
export type Stream<Paths> = <P extends StreamPath<Paths>>(
  path: P,
  options: Body<Paths[P]["post" & keyof Paths[P]]> & Reader<EventOf<Paths[P]>>,
) => Promise<void>;

interface AnyOptions {
  body?: unknown;
  onOpen?: () => void;
  onEvent: (event: never) => void;
  ends: readonly string[];
}

/** Returns the function that reads the streams in an OpenAPI document. */
export function streams<Paths>(): Stream<Paths> {
  const stream = (path: string, { body, ends, onEvent, ...options }: AnyOptions) =>
    streamEvents(path, {
      ...options,
      body,
      isEnd: ({ event }) => ends.includes(event),
      onEvent: ({ event, data }) => onEvent({ event, data: JSON.parse(data) } as never),
    });
  return stream as Stream<Paths>;
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
