// Outbound HTTP requests to hosts that the operator granted.

import type { output } from "zod/v4/core";
import * as host from "#host/http";
import type { BlobRef } from "./blob.ts";
import { code, Failure, type Result } from "./failure.ts";
import { type Extra, type Json, parse, read, type Type, write } from "./json.ts";
import { appendQuery } from "./query.ts";
import { decodeLossy } from "./utf8.ts";

/** Extension field that contains the delay before the request, in milliseconds. */
const DELAY_MS = "delay_ms";

/** Maximum length in characters of the body's excerpt in a failure message. */
const QUOTED_CHARS = 200;

/** The body of a request. */
export type Body =
  /** No body. */
  | { type: "empty" }
  /** Text. Placeholders of secrets in the text are replaced. */
  | { type: "text"; text: string }
  /** Bytes. */
  | { type: "bytes"; bytes: Uint8Array }
  /** A blob. Its bytes do not pass through the guest. */
  | { type: "blob"; blob: BlobRef };

/** What a request has besides its method and URL. */
export interface RequestOptions {
  /** Headers, by name or in order. */
  headers?: Readonly<Record<string, string>> | ReadonlyArray<readonly [string, string]>;
  /**
   * Query parameters, which are added to the URL and percent-encoded. A value that consists of exactly
   * one `{{secret:NAME}}` is not encoded, so that the host can replace it.
   */
  query?: Readonly<Record<string, string | number | boolean>>;
  /** A text body. Placeholders of secrets in the text are replaced. */
  text?: string;
  /** A JSON body, with its content type. */
  json?: unknown;
  /** A body of bytes. */
  bytes?: Uint8Array;
  /** A blob as the body. Its bytes do not pass through the guest. */
  blob?: BlobRef;
  /** Timeout of the whole exchange in milliseconds. The operator's limit is the maximum. */
  timeoutMs?: number;
  /**
   * Value of the header `Idempotency-Key`, which permits the host to repeat the request after a crash.
   * The service must support the header.
   */
  idempotencyKey?: string;
  /**
   * Delay in milliseconds before the host sends the request, to back off from a busy service. A plugin
   * itself cannot wait. The host waits at most ten seconds. The delay counts toward the timeout of the
   * node.
   */
  delayMs?: number;
  /** Extension fields. */
  extra?: Extra;
}

/** A request. */
export class Request {
  /** Method in upper case. */
  readonly method: string;
  /** Absolute URL with the scheme `https` or `http`. */
  readonly url: string;
  /** Headers in order. */
  readonly headers: Array<[string, string]>;
  /** The body. */
  readonly body: Body;
  /** Timeout of the whole exchange in milliseconds. */
  readonly timeoutMs: number | undefined;
  /** Value of the header `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined;
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a request. */
  constructor(method: string, url: string, options: RequestOptions = {}) {
    const { headers = [], query = {}, delayMs = 0 } = options;
    const pairs = Array.isArray(headers) ? headers : Object.entries(headers);
    const typed: Array<[string, string]> =
      options.json === undefined ? [] : [["content-type", "application/json"]];
    this.method = method.toUpperCase();
    this.url = Object.entries(query).reduce(
      (address, [name, value]) => appendQuery(address, name, String(value)),
      url,
    );
    this.headers = [...pairs.map(([name, value]) => [name, value] as [string, string]), ...typed];
    this.body = bodyOf(options);
    this.timeoutMs = options.timeoutMs;
    this.idempotencyKey = options.idempotencyKey;
    this.extra = { ...options.extra, ...(delayMs > 0 ? { [DELAY_MS]: delayMs } : {}) };
  }

  /** Returns the delay in milliseconds, or 0. For tests, because the fake host does not wait. */
  delayMs(): number {
    const delay = this.extra[DELAY_MS];
    return typeof delay === "number" ? delay : 0;
  }

  /**
   * Sends the request. A response with any status is a success; the call fails only without a
   * response.
   */
  send(): Response {
    return host.send(this);
  }
}

function bodyOf({ text, json, bytes, blob }: RequestOptions): Body {
  const bodies: Body[] = [];
  if (text !== undefined) bodies.push({ type: "text", text });
  if (json !== undefined) {
    bodies.push({ type: "text", text: write("the body of an HTTP request", json) });
  }
  if (bytes !== undefined) bodies.push({ type: "bytes", bytes });
  if (blob !== undefined) bodies.push({ type: "blob", blob });
  if (bodies.length > 1) {
    throw Failure.invalid("an HTTP request has only one of `text`, `json`, `bytes` and `blob`");
  }
  return bodies[0] ?? { type: "empty" };
}

/** The fields of a {@link Response}. */
export interface ResponseFields {
  /** Status code, such as 200. */
  status: number;
  /** Headers with names in lower case. */
  headers: Array<[string, string]>;
  /** The body. */
  body: Uint8Array;
  /** URL after redirects. */
  url: string;
  /** Extension fields. */
  extra: Extra;
}

/** An HTTP response. */
export class Response implements ResponseFields {
  readonly status: number;
  readonly headers: Array<[string, string]>;
  readonly body: Uint8Array;
  readonly url: string;
  readonly extra: Extra;

  /** Builds a response, for tests. */
  constructor(fields: Partial<ResponseFields> = {}) {
    this.status = fields.status ?? 200;
    this.headers = fields.headers ?? [];
    this.body = fields.body ?? new Uint8Array();
    this.url = fields.url ?? "";
    this.extra = fields.extra ?? {};
  }

  /** Returns the first header with a name, in upper or lower case. */
  header(name: string): string | undefined {
    const wanted = name.toLowerCase();
    return this.headers.find(([key]) => key.toLowerCase() === wanted)?.[1];
  }

  /** Returns the body as text. Invalid UTF-8 is replaced. */
  text(): string {
    return decodeLossy(this.body);
  }

  /** Parses the JSON body. */
  json(): Json;
  /**
   * Parses the JSON body as a type.
   *
   * @throws `invalid` if the body is not JSON or does not fit the type.
   */
  json<T extends Type>(type: T): output<T>;
  json(type?: Type): unknown {
    const what = `the response of \`${this.url}\``;
    return type === undefined ? parse(what, this.text()) : read(what, this.text(), type);
  }

  /** Returns true if the status is 200 to 299. */
  isSuccess(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /**
   * Returns the response if its status is 200 to 299.
   *
   * @throws `rate-limited` for 429, and `unavailable` for 408 and from 500 on, which are both
   * retryable; `not-found` for 404; `http-status` for any other status.
   */
  ok(): this {
    if (this.isSuccess()) return this;
    const { status, url } = this;
    const excerpt = [...this.text()].slice(0, QUOTED_CHARS).join("");
    const message = `\`${url}\` responded with status ${status}: ${excerpt}`;
    if (status === 429) throw new Failure(code.RATE_LIMITED, message, { retryable: true });
    if (status === 408 || status >= 500) throw Failure.unavailable(message);
    if (status === 404) throw Failure.notFound(message);
    throw new Failure("http-status", message);
  }
}

/**
 * Sends a `GET` request. The host replaces `{{secret:NAME}}` in a header value, the query or a text
 * body when it sends the request, and only for granted hosts. The plugin itself never has the value of
 * a secret.
 *
 * ```ts
 * import { http } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const host = new FakeHost().http((request) => {
 *   assert.equal(request.url, "https://api.example.com/rates?base=EUR");
 *   return { json: { USD: 1.1 } };
 * });
 * host.run(() => {
 *   const response = http.get("https://api.example.com/rates", {
 *     query: { base: "EUR" },
 *     headers: { authorization: "Bearer {{secret:RATES_KEY}}" },
 *     timeoutMs: 5_000,
 *   });
 *   const rates = response.ok().json(z.record(z.string(), z.number()));
 *   assert.equal(rates.USD, 1.1);
 * });
 * ```
 */
export function get(url: string, options: RequestOptions = {}): Response {
  return new Request("GET", url, options).send();
}

/** Sends a `POST` request. */
export function post(url: string, options: RequestOptions = {}): Response {
  return new Request("POST", url, options).send();
}

/** Sends a request with any method. */
export function send(method: string, url: string, options: RequestOptions = {}): Response {
  return new Request(method, url, options).send();
}

/**
 * Sends several requests concurrently. Returns the results in the order of the requests.
 *
 * ```ts
 * import { Failure, http } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().http((request) => ({ text: request.url }));
 * host.run(() => {
 *   const results = http.sendAll([
 *     new http.Request("GET", "https://a.example"),
 *     new http.Request("GET", "https://b.example"),
 *   ]);
 *   assert.ok(results.every((result) => !(result instanceof Failure)));
 * });
 * ```
 */
export function sendAll(requests: readonly Request[]): Array<Result<Response>> {
  return host.sendAll(requests);
}
