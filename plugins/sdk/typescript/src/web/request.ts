// HTTP requests of web handlers.

import type { output } from "zod/v4/core";
import { Failure } from "../failure.ts";
import { type Extra, fromValue, isOptional, type Json, parse, type Type } from "../json.ts";
import { decodeUtf8, encodeUtf8 } from "../utf8.ts";
import { trimmed } from "../whitespace.ts";
import type { PageQuery } from "./page.ts";
import { status } from "./status.ts";

/** The greatest number of items of the other SDKs, whose numbers have 32 bits. */
const MOST_ITEMS = 2 ** 32 - 1;

/** Names with values, in order. A name may occur several times. */
export type Pairs = Array<[name: string, value: string]>;

/** The fields of a {@link Request}. */
export interface RequestFields {
  /** Method in upper case, such as `GET`. */
  method: string;
  /** Path relative to the mount of the app. */
  path: string;
  /** Pattern of the matching route, such as `/api/items/{id}`. */
  route: string;
  /** Path parameters, percent-decoded. */
  params: Pairs;
  /** Query parameters in order, percent-decoded. */
  queryPairs: Pairs;
  /** Headers with names in lower case. Does not contain credentials for the host's API. */
  headers: Pairs;
  /** The body. */
  body: Uint8Array;
  /** Tenant of the request, if it has one. */
  tenant: string | undefined;
  /** Extension fields. */
  extra: Extra;
}

/** An HTTP request. `B` is the type of the body that the handler declares. */
export class Request<B = Json> implements RequestFields {
  readonly method: string;
  readonly path: string;
  readonly route: string;
  readonly params: Pairs;
  readonly queryPairs: Pairs;
  readonly headers: Pairs;
  readonly body: Uint8Array;
  readonly tenant: string | undefined;
  readonly extra: Extra;
  readonly #type: Type | undefined;

  /** Builds a request, for tests. `type` is the type of the body. */
  constructor(fields: Partial<RequestFields> = {}, type?: Type) {
    this.method = fields.method ?? "GET";
    this.path = fields.path ?? "/";
    this.route = fields.route ?? "";
    this.params = fields.params ?? [];
    this.queryPairs = fields.queryPairs ?? [];
    this.headers = fields.headers ?? [];
    this.body = fields.body ?? new Uint8Array();
    this.tenant = fields.tenant;
    this.extra = fields.extra ?? {};
    this.#type = type;
  }

  /** Adds a path parameter, for tests. */
  withParam(name: string, value: string): Request<B> {
    return this.#with({ params: [...this.params, [name, value]] });
  }

  /** Adds a query parameter, for tests. */
  withQuery(name: string, value: string): Request<B> {
    return this.#with({ queryPairs: [...this.queryPairs, [name, value]] });
  }

  /** Adds a header, for tests. */
  withHeader(name: string, value: string): Request<B> {
    return this.#with({ headers: [...this.headers, [name.toLowerCase(), value]] });
  }

  /** Sets the body, for tests. A text becomes UTF-8. */
  withBody(body: Uint8Array | string): Request<B> {
    return this.#with({ body: typeof body === "string" ? encodeUtf8(body) : body });
  }

  /** Returns the same request for a handler whose body has another type. */
  as<D>(type: Type | undefined): Request<D> {
    return new Request<D>(this, type);
  }

  /**
   * Parses the JSON body as the type that the handler declares. The type gets `undefined` if it is
   * optional and the body is missing.
   */
  json(): B;
  /**
   * Parses the JSON body as a type.
   *
   * @throws `invalid` if the body is not JSON or does not fit the type. A handler that throws this
   * failure responds with status 400.
   */
  json<T extends Type>(type: T): output<T>;
  json(type: Type | undefined = this.#type): unknown {
    const what = "the request body";
    return badRequest(() => {
      const text = this.text();
      // An empty body is a missing one.
      const isMissing = text === "" && isOptional(type);
      const value = isMissing ? undefined : parse(what, text);
      return type === undefined ? value : fromValue(what, value, type);
    });
  }

  /**
   * Returns the body as text.
   *
   * @throws `invalid` with status 400 if the body is not UTF-8.
   */
  text(): string {
    const text = decodeUtf8(this.body);
    if (text !== undefined) return text;
    throw Failure.invalid("the request body is not UTF-8").withStatus(status.BAD_REQUEST);
  }

  /** Returns a path parameter as text. */
  param(name: string): string;
  /**
   * Returns a path parameter as a type. The type gets the text, and the number or boolean that the
   * text represents.
   *
   * ```ts
   * import { Request } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const request = new Request().withParam("id", "7");
   * assert.equal(request.param("id", z.int()), 7);
   * assert.throws(() => request.param("name"), { code: "invalid" });
   * ```
   *
   * @throws `invalid` with status 400 if the route has no such parameter, or if its value does not
   * fit the type.
   */
  param<T extends Type>(name: string, type: T): output<T>;
  param(name: string, type?: Type): unknown {
    return badRequest(() => {
      const text = find(this.params, name);
      if (text === undefined) {
        throw Failure.invalid(`route \`${this.route}\` has no parameter \`${name}\``);
      }
      return type === undefined ? text : fromText(`path parameter \`${name}\``, text, type);
    });
  }

  /** Returns the first query parameter with a name, as text. */
  query(name: string): string | undefined;
  /**
   * Returns the first query parameter with a name as a type, like {@link param}. The type gets
   * `undefined` if there is none.
   *
   * @throws `invalid` with status 400 if the value does not fit the type.
   */
  query<T extends Type>(name: string, type: T): output<T>;
  query(name: string, type?: Type): unknown {
    const text = find(this.queryPairs, name);
    if (type === undefined) return text;
    return badRequest(() => fromText(`query parameter \`${name}\``, text, type));
  }

  /**
   * Parses the first query parameter with a name as an integer. Returns `undefined` without one.
   *
   * ```ts
   * import { Request } from "wattle-plugin";
   *
   * const request = new Request().withQuery("after", "7");
   * assert.equal(request.number("after"), 7);
   * assert.equal(request.number("before"), undefined);
   * ```
   *
   * @throws `invalid` with status 400 if the value is not an integer from `least` to `most`.
   */
  number(
    name: string,
    least: number = Number.MIN_SAFE_INTEGER,
    most: number = Number.MAX_SAFE_INTEGER,
  ): number | undefined {
    const text = find(this.queryPairs, name);
    if (text === undefined) return undefined;
    const digits = least < 0 ? /^[+-]?\d+$/ : /^\+?\d+$/;
    // Adding zero makes a negative zero positive.
    const number = digits.test(text) ? Number(text) + 0 : Number.NaN;
    if (number >= least && number <= most) return number;
    throw Failure.invalid(`\`${name}\` must be a whole number`).withStatus(status.BAD_REQUEST);
  }

  /**
   * Returns the page of a list that the request asks for: at least one and at most `most` items, by
   * default `fallback`.
   *
   * ```ts
   * import { Request } from "wattle-plugin";
   *
   * const request = new Request().withQuery("limit", "500");
   * assert.deepEqual(request.page(50, 200), { limit: 200, offset: 0 });
   * ```
   *
   * @throws `invalid` with status 400 if `limit` or `offset` is not a whole number.
   */
  page(fallback: number, most: number): PageQuery {
    const limit = this.number("limit", 0, MOST_ITEMS) ?? fallback;
    const offset = this.number("offset", 0, MOST_ITEMS) ?? 0;
    return { limit: Math.max(Math.min(limit, most), 1), offset };
  }

  /**
   * Returns true if a header with entity tags, such as `if-match` or `if-none-match`, has this one or
   * `*`. The tag includes its quotes and contains no comma. A weak tag, such as that of a proxy which
   * compressed a response, is the same tag in `if-none-match` only.
   *
   * ```ts
   * import { Request } from "wattle-plugin";
   *
   * const request = new Request().withHeader("if-none-match", '"6", "7"');
   * assert.ok(request.hasTag("if-none-match", '"7"'));
   * ```
   */
  hasTag(header: string, tag: string): boolean {
    const isWeak = header.toLowerCase() === "if-none-match";
    const tags = this.header(header)?.split(",").map(trimmed) ?? [];
    return tags.some((it) => it === "*" || it === tag || (isWeak && opaque(it) === opaque(tag)));
  }

  /** Returns the first header with a name, in upper or lower case. */
  header(name: string): string | undefined {
    return find(this.headers, name.toLowerCase());
  }

  #with(fields: Partial<RequestFields>): Request<B> {
    return new Request<B>({ ...this, ...fields }, this.#type);
  }
}

/** Returns an entity tag without the prefix of a weak one. */
function opaque(tag: string): string {
  return tag.startsWith("W/") ? tag.slice(2) : tag;
}

function find(pairs: Pairs, name: string): string | undefined {
  return pairs.find(([key]) => key === name)?.[1];
}

/** Converts a text to a type, as text, or as the number or boolean that it represents. */
function fromText(what: string, text: string | undefined, type: Type): unknown {
  const other = text === "true" || text === "false" ? text === "true" : Number(text);
  const isOther = text !== undefined && text.trim() !== "" && !Number.isNaN(other);
  try {
    return fromValue(what, text, type);
  } catch (failure) {
    if (!isOther) throw failure;
    return fromValue(what, other, type);
  }
}

function badRequest<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw Failure.from(error).withStatus(status.BAD_REQUEST);
  }
}
