// Web handlers, and the types that describe their endpoints.

import type { output } from "zod/v4/core";
import { Failure } from "../failure.ts";
import type { Json, Type } from "../json.ts";
import { checkSynchronous } from "../name.ts";
import type { Request } from "./request.ts";
import { Response } from "./response.ts";

/** A method of an endpoint. */
export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

const METHODS: readonly Method[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/**
 * The types of an endpoint. They become its description in the host's OpenAPI document. Only `body`
 * has an effect on requests: it is the type of {@link Request.json}.
 */
export interface EndpointTypes<B extends Type = Type<Json>> {
  /** Documentation; the first paragraph is the summary. */
  doc?: string;
  /** Parameters of the query string. One whose type is optional may be missing. */
  query?: Readonly<Record<string, Type>>;
  /** The JSON body of the request, which may be missing if the type is optional. */
  body?: B;
  /**
   * The response with status 200, or all responses by their status. A response without a type has no
   * body.
   */
  returns?: Type | Readonly<Record<number, Type | undefined>>;
  /** Server-sent events; the type is that of one event. */
  events?: Type;
  /** Media type of a body that is not JSON. */
  bytes?: string;
  /** The JSON body of all other responses. */
  error?: Type;
}

/** The function of a web handler. */
export type HandlerFunction<B extends Type> = (request: Request<output<B>>) => Response;

/** A web handler as the host sees it. */
export interface HandlerEntry {
  /** Kind of the entry. */
  readonly kind: "handler";
  /** Method in upper case. */
  readonly method: Method;
  /** Path with optional parameters, such as `/api/items/{id}`. */
  readonly path: string;
  /** The declared types. */
  readonly types: EndpointTypes<Type>;
  /** Handles a request. */
  handle(request: Request<unknown>): Response;
}

/** A web handler. {@link handler} creates it. */
export class Handler<B extends Type> implements HandlerEntry {
  readonly kind = "handler";
  readonly method: Method;
  readonly path: string;
  readonly types: EndpointTypes<Type>;
  readonly #function: HandlerFunction<B>;

  /** Creates a handler. */
  constructor(method: Method, path: string, types: EndpointTypes<B>, handle: HandlerFunction<B>) {
    if (!METHODS.includes(method)) {
      const known = METHODS.join("`, `");
      throw Failure.invalid(`the method \`${method}\` of \`${path}\` is none of \`${known}\``);
    }
    if (!path.startsWith("/")) {
      throw Failure.invalid(`the path \`${path}\` of a handler does not begin with \`/\``);
    }
    this.method = method;
    this.path = path;
    this.types = types;
    this.#function = handle;
  }

  handle(request: Request<unknown>): Response {
    const returned = this.#function(request.as(this.types.body));
    const what = `handler \`${this.method} ${this.path}\``;
    checkSynchronous(what, returned);
    if (!(returned instanceof Response)) {
      throw Failure.internal(`${what} returned no response; use \`Response.json\``);
    }
    return returned;
  }
}

/**
 * Declares the web handler of an endpoint. A handler runs outside of any journal: what must survive a
 * crash goes through a run that it starts.
 *
 * ```ts
 * import { handler, Request, Response } from "wattle-plugin";
 * import * as z from "zod";
 *
 * export const rename = handler(
 *   "POST",
 *   "/api/items/{id}",
 *   { doc: "Renames an item.", body: z.object({ name: z.string() }) },
 *   (request) => {
 *     const { name } = request.json();
 *     return Response.json(200, { id: request.param("id", z.int()), name });
 *   },
 * );
 *
 * const request = new Request().withParam("id", "7").withBody('{"name": "lamp"}');
 * assert.deepEqual(rename.handle(request).jsonBody(), { id: 7, name: "lamp" });
 * ```
 */
export function handler<B extends Type = Type<Json>>(
  method: Method,
  path: string,
  types: EndpointTypes<B>,
  handle: HandlerFunction<B>,
): Handler<B> {
  return new Handler(method, path, types, handle);
}
