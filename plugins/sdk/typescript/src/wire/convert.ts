// Conversions of JSON, extension fields, options, integers and failures, which all interfaces use.

import type * as raw from "wattle:plugin/types@0.1.0";
import { Failure, type Result } from "../failure.ts";
import type { Extra, Json } from "../json.ts";

/** Parses JSON text from the host. */
export function value(text: raw.Json): Json {
  return JSON.parse(text) as Json;
}

/** Serializes a value for the host. */
export function text(value: Json): raw.Json {
  return JSON.stringify(value);
}

/** Converts extension fields from the host. */
export function extra(pairs: raw.Extra): Extra {
  return Object.fromEntries(pairs.map(([key, text]) => [key, value(text)]));
}

/** Converts extension fields for the host. */
export function rawExtra(extra: Extra = {}): raw.Extra {
  return Object.entries(extra).map(([key, value]) => [key, text(value)]);
}

/** Converts an optional value from the host. */
export function option<A, B>(raw: raw.Option<A>, convert: (value: A) => B): B | undefined {
  return raw === null || raw === undefined ? undefined : convert(raw);
}

/** Converts an optional value for the host. Both engines accept `null`. */
export function rawOption<A, B>(value: A | undefined, convert: (value: A) => B): B | null {
  return value === undefined ? null : convert(value);
}

/** Returns a value itself, for options without a conversion. */
export function same<T>(value: T): T {
  return value;
}

/** Converts a failure from the host. */
export function failure(raw: raw.Failure): Failure {
  const { code, message, retryable } = raw;
  return new Failure(code, message, { retryable, details: option(raw.details, value) });
}

/** Converts a failure for the host. */
export function rawFailure(failure: Failure): raw.Failure {
  const { code, message, retryable, details } = failure;
  return { code, message, retryable, details: rawOption(details, text) };
}

/** Calls the host. The failure of the call, which engines throw as a payload, becomes a `Failure`. */
export function call<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { payload } = (error ?? {}) as { payload?: raw.Failure | null };
    if (typeof payload?.code !== "string") throw error;
    throw failure(payload);
  }
}

/** Converts the output or the failure of one call of several. */
export function result<A, B>(raw: raw.RawResult<A>, convert: (value: A) => B): Result<B> {
  return raw.tag === "ok" ? convert(raw.val) : failure(raw.val);
}
