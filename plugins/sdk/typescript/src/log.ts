// Log messages for the operator. The host adds the plugin and the task to each message.

import * as host from "#host/log";
import { type Extra, toExtra } from "./json.ts";

/** The severity of a message. */
export type Level =
  /** The finest level: individual steps. */
  | "trace"
  /** Details for the author of the plugin. */
  | "debug"
  /** Normal operation. */
  | "info"
  /** A possible problem. */
  | "warn"
  /** An error. */
  | "error";

/** Structured fields of a message. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Writes a message with structured fields. The host truncates a message that has more than 64 KiB with
 * its fields, and drops the messages of a task or a handler after the first 10,000, or after 8 MiB.
 *
 * In a guest, `console.log` and its kin write messages as well.
 *
 * ```ts
 * import { log } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost();
 * host.run(() => {
 *   log.info(`stored ${3} rows`);
 *   log.write("warn", "slow query", { ms: 1200 });
 * });
 * assert.equal(host.logged()[0]?.message, "stored 3 rows");
 * assert.deepEqual(host.logged()[1]?.fields, { ms: 1200 });
 * ```
 */
export function write(level: Level, message: string, fields: Fields = {}): void {
  const extra: Extra = toExtra(fields);
  host.write(level, message, extra);
}

/** Writes a message of level `trace`. */
export function trace(message: string, fields?: Fields): void {
  write("trace", message, fields);
}

/** Writes a message of level `debug`. */
export function debug(message: string, fields?: Fields): void {
  write("debug", message, fields);
}

/** Writes a message of level `info`. */
export function info(message: string, fields?: Fields): void {
  write("info", message, fields);
}

/** Writes a message of level `warn`. */
export function warn(message: string, fields?: Fields): void {
  write("warn", message, fields);
}

/** Writes a message of level `error`. */
export function error(message: string, fields?: Fields): void {
  write("error", message, fields);
}
