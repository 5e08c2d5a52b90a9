// Custom events and progress, which appear in the event log and in all streams.

import * as host from "#host/emit";
import { toValue } from "./json.ts";

/** Name of the event that contains a delta of a message. */
const MESSAGE_DELTA = "message.delta";

/** Name of the event that ends a streamed message. */
const MESSAGE_END = "message.end";

/**
 * Appends an event to the log. The name has 1 to 64 characters of `[a-zA-Z0-9_.-]`. The names
 * `message.delta` and `message.end` are reserved, see {@link messageDelta} and {@link messageEnd}.
 *
 * ```ts
 * import { emit } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost();
 * host.run(() => {
 *   emit.progress("reading page 3 of 4", 0.75);
 *   emit.custom("page-read", { page: 3 });
 * });
 * assert.deepEqual(host.emitted(), [["page-read", { page: 3 }]]);
 * ```
 */
export function custom(name: string, data: unknown): void {
  host.custom(name, toValue(`the event \`${name}\``, data));
}

/**
 * Streams a delta of the message that the node will write with this id. The text continues the earlier
 * deltas of the message. A message must end before another one begins.
 *
 * The host streams the completions of models by itself. A node that writes a message can stream it in
 * the same way: chat clients then show a growing message instead of an event.
 *
 * ```ts
 * import { emit } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost();
 * host.run(() => {
 *   emit.messageDelta("greeting", "Hello,");
 *   emit.messageDelta("greeting", " world!");
 *   emit.messageEnd("greeting");
 * });
 * assert.deepEqual(host.emitted()[0], ["message.delta", { id: "greeting", text: "Hello," }]);
 * // The node then writes the whole message, with the id `greeting`, to its channel.
 * ```
 */
export function messageDelta(id: string, text: string): void {
  host.custom(MESSAGE_DELTA, { id, text });
}

/** Ends the streamed message with this id. */
export function messageEnd(id: string): void {
  host.custom(MESSAGE_END, { id });
}

/**
 * Reports the progress of the node: a message, and the completed fraction from 0 to 1 if it is known.
 * The event is also a task heartbeat, which restarts the idle timeout of the attempt.
 */
export function progress(message: string, fraction?: number): void {
  host.progress(message, fraction);
}
