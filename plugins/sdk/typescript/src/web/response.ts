// HTTP responses of web handlers.

import type { BlobRef } from "../blob.ts";
import { Failure } from "../failure.ts";
import { type Extra, type Json, parse, write } from "../json.ts";
import { decodeUtf8, encodeUtf8 } from "../utf8.ts";
import type { Pairs } from "./request.ts";

/** The format of a stream. */
export type StreamFormat =
  /** Server-sent events in the format of the host. */
  | "sse"
  /** The UI message stream of the AI SDK. */
  | "ai-sdk"
  /** AG-UI. */
  | "ag-ui"
  /** A format that the app defines in a file with this name. */
  | { custom: string };

/** A hand-off: the host takes over the response and streams the events of a run. */
export interface HandOff {
  /** Id of the thread. */
  threadId: string;
  /** Id of the run; without it, the newest run of the thread. */
  runId?: string | undefined;
  /** Format of the stream. */
  format: StreamFormat;
  /** Sequence number after which the stream begins; without it, at the first event. */
  after?: number | undefined;
  /**
   * Cancels the run if its last client disconnects and none connects again within this number of
   * milliseconds, at most 10 minutes. Without it, the run continues.
   */
  cancelOnDisconnectMs?: number | undefined;
  /** The nodes whose model calls are shown, in formats that show a conversation; without it, all. */
  nodes?: readonly string[] | undefined;
  /** Extension fields. */
  extra?: Extra | undefined;
}

/** The body of a response. */
export type Body =
  /** No body. */
  | { type: "empty" }
  /** A body of bytes. */
  | { type: "bytes"; bytes: Uint8Array }
  /** A blob. Its bytes do not pass through the guest. */
  | { type: "blob"; blob: BlobRef }
  /** A stream that the host sends instead of the guest. */
  | { type: "hand_off"; handOff: HandOff };

/** An HTTP response. */
export class Response {
  /** Status code, such as 200. */
  readonly status: number;
  /** Headers in order. */
  readonly headers: Pairs;
  /** The body. */
  readonly body: Body;

  /** Creates a response. */
  constructor(status: number, body: Body = { type: "empty" }, headers: Pairs = []) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }

  /** Creates a response without a body. */
  static empty(status: number): Response {
    return new Response(status);
  }

  /** Creates a response with a JSON body. */
  static json(status: number, value: unknown): Response {
    return textual(status, "application/json", write("the response body", value));
  }

  /** Creates a response with a text body. */
  static text(status: number, text: string): Response {
    return textual(status, "text/plain; charset=utf-8", text);
  }

  /** Creates a response with a body of bytes and status 200. */
  static bytes(contentType: string, bytes: Uint8Array): Response {
    return new Response(200, { type: "bytes", bytes }, [["content-type", contentType]]);
  }

  /** Creates a response with a blob and status 200. The host sends the blob with its media type. */
  static blob(blob: BlobRef): Response {
    return new Response(200, { type: "blob", blob });
  }

  /**
   * Creates a hand-off of a run, with status 200. The host streams the events of the run.
   *
   * ```ts
   * import { Response } from "wattle-plugin";
   *
   * const response = Response.handOff({ threadId: "thread-1", format: "ai-sdk" });
   * assert.equal(response.status, 200);
   * ```
   */
  static handOff(handOff: HandOff): Response {
    return new Response(200, { type: "hand_off", handOff });
  }

  /**
   * Creates a response with a failure as an `application/problem+json` body.
   *
   * ```ts
   * import { Failure, Response } from "wattle-plugin";
   *
   * const response = Response.problem(404, Failure.notFound("no item 7"));
   * assert.equal(response.jsonBody().detail, "no item 7");
   * ```
   */
  static problem(status: number, failure: Failure): Response {
    const { code, message, details = null } = failure;
    const problem = { status, code, detail: message, details };
    return textual(status, "application/problem+json", write("the problem", problem));
  }

  /** Adds a header. */
  withHeader(name: string, value: string): Response {
    return new Response(this.status, this.body, [...this.headers, [name, value]]);
  }

  /** Sets the status. */
  withStatus(status: number): Response {
    return new Response(status, this.body, this.headers);
  }

  /** Parses the body as a JSON object, for tests. */
  jsonBody(): { [key: string]: Json } {
    const text = this.body.type === "bytes" ? decodeUtf8(this.body.bytes) : undefined;
    if (text === undefined) throw Failure.invalid("the response has no text as its body");
    return parse("the response body", text) as { [key: string]: Json };
  }
}

/** Makes a failure with a status a response. */
export function settle(work: () => Response): Response {
  try {
    return work();
  } catch (error) {
    const status = error instanceof Failure ? error.status() : undefined;
    if (status === undefined) throw error;
    return Response.problem(status, error as Failure);
  }
}

function textual(status: number, contentType: string, text: string): Response {
  return Response.bytes(contentType, encodeUtf8(text)).withStatus(status);
}
