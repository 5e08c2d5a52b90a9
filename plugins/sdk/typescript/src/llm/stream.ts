// Streamed completions, for plugins that process deltas themselves. They are not needed to show deltas
// to users: the host streams every model call into the event log.

import * as host from "#host/llm";
import type { Json } from "../json.ts";
import type { Completion } from "./completion.ts";
import { Request, type RequestOptions } from "./request.ts";

/** A delta of a streamed completion. */
export type StreamEvent =
  /** Text that continues the text before. */
  | { type: "text"; text: string }
  /** Reasoning that continues the reasoning before. */
  | { type: "reasoning"; text: string }
  /**
   * A part of a tool call: its position among the tool calls of the completion, from 0; the name of the
   * tool, in the first delta of the call; and the next part of the arguments as JSON text.
   */
  | { type: "tool_call_delta"; index: number; name: string | undefined; arguments: string }
  /**
   * Discards the deltas so far. The model writes the completion again, because the first one violated
   * the schema.
   */
  | { type: "restart" }
  /** A kind unknown to this SDK version. */
  | { type: "other"; value: Json };

/** A stream of the host, or of the fake host. */
export interface StreamHandle {
  /** Returns the next deltas; none at the end. */
  next(): StreamEvent[];
  /** Returns the whole completion, after the end. */
  finish(): Completion;
  /** Ends the stream. Before its end, this cancels the model call. */
  close(): void;
}

/**
 * A streamed completion. It iterates over its deltas, and ends when the completion is complete or the
 * call has failed.
 */
export class CompletionStream implements Iterable<StreamEvent> {
  readonly #handle: StreamHandle;
  #ready: StreamEvent[] = [];
  #isOver = false;

  /** Creates a stream. */
  constructor(handle: StreamHandle) {
    this.#handle = handle;
  }

  /** Iterates over the deltas that were not read yet. */
  *[Symbol.iterator](): Generator<StreamEvent, void> {
    for (let event = this.#next(); event !== undefined; event = this.#next()) yield event;
  }

  /** Waits for the whole completion. Skips deltas that were not read. */
  finish(): Completion {
    while (this.#next() !== undefined);
    return this.#handle.finish();
  }

  /** Ends the stream. Before its end, this cancels the model call. */
  close(): void {
    this.#isOver = true;
    this.#ready = [];
    this.#handle.close();
  }

  #next(): StreamEvent | undefined {
    if (this.#ready.length === 0 && !this.#isOver) {
      try {
        this.#ready = this.#handle.next();
      } catch (error) {
        this.#isOver = true;
        throw error;
      }
      this.#isOver = this.#ready.length === 0;
    }
    return this.#ready.shift();
  }
}

/**
 * Calls a model and streams its completion.
 *
 * A stream is one journaled call, like {@link complete}. A node that is executed again gets the same
 * completion, but the deltas can be split differently. Decisions of a node must therefore depend only
 * on the whole completion.
 *
 * ```ts
 * import { llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().llm(() => llm.Completion.ofText("two words"));
 * host.run(() => {
 *   const stream = llm.stream({ route: "chat", user: "go" });
 *   let text = "";
 *   for (const event of stream) {
 *     if (event.type === "text") text += event.text;
 *     if (event.type === "restart") text = "";
 *   }
 *   assert.equal(text, "two words");
 *   assert.equal(stream.finish().text(), "two words");
 * });
 * ```
 */
export function stream(request: RequestOptions): CompletionStream {
  return new CompletionStream(host.stream(new Request(request)));
}
