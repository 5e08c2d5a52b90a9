// A host whose streams of events a test writes.
import { vi } from "vitest";
import type { EventOutline } from "../../src/api/log.ts";

/** A stream that was opened. */
export interface OpenedStream {
  url: URL;
  headers: Headers;
  send: (...events: readonly EventOutline[]) => void;
  write: (text: string) => void;
  /** Ends the stream as a host does that stops. */
  end: () => void;
  /** Ends the stream as a host does that is killed. */
  cut: () => void;
  isClosed: () => boolean;
}

/** Returns the message of an event, as the host writes it. */
function message(event: EventOutline): string {
  return `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Serves streams, and everything else by `other`. Returns the streams that were opened. */
export function serveStreams(
  other: (request: Request) => Response | Promise<Response>,
): OpenedStream[] {
  const opened: OpenedStream[] = [];
  vi.stubGlobal("fetch", async (input: Request | string) => {
    const request = typeof input === "string" ? new Request(input) : input;
    if (!new URL(request.url).pathname.endsWith("/events")) return other(request);
    return serveStream(request, opened);
  });
  return opened;
}

function serveStream({ url, headers, signal }: Request, opened: OpenedStream[]): Response {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let isClosed = false;
  const close = (act: () => void) => {
    if (!isClosed) act();
    isClosed = true;
  };
  const body = new ReadableStream<Uint8Array>({
    start: (started) => {
      controller = started;
    },
    cancel: () => {
      isClosed = true;
    },
  });
  signal.addEventListener("abort", () =>
    close(() => controller?.error(new DOMException("aborted", "AbortError"))),
  );
  const write = (text: string) => controller?.enqueue(new TextEncoder().encode(text));
  opened.push({
    url: new URL(url),
    headers,
    write,
    send: (...events) => write(events.map(message).join("")),
    end: () => close(() => controller?.close()),
    cut: () => close(() => controller?.error(new TypeError("network error"))),
    isClosed: () => isClosed,
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
