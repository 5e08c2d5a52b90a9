// Requests to the endpoints of an app, typed by its OpenAPI document. Paths, parameters, bodies and
// responses are those of the generated `paths`, so a page declares no types for them.
import { type RequestOptions, request } from "./index.ts";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The methods of a path. The other ones are optional and `never` in the generated type. */
type MethodOf<Path> = {
  [M in Method & keyof Path]: Path extends Record<M, object> ? M : never;
}[Method & keyof Path];

/** The JSON document of a body or a response; `undefined` if it has none. */
type Json<T> = T extends { content: { "application/json": infer D } } ? D : undefined;

type Success = 200 | 201 | 202 | 204;

/** The JSON document of a successful response. */
type Answer<O> = O extends { responses: infer R }
  ? { [S in Success & keyof R]: Json<R[S]> }[Success & keyof R]
  : never;

/** Parameters of a query. Those that are `undefined` are not sent. */
type Query<Q> = { [N in keyof Q]: Q[N] | undefined };

type Parameters<P> = {
  [K in keyof P as K & ("path" | "query")]: K extends "query" ? Query<P[K]> : P[K];
};

/** The option `body` of a request. */
export type Body<O> = O extends { requestBody: infer B }
  ? { body: Json<B> }
  : O extends { requestBody?: infer B }
    ? { body?: Json<B> }
    : never;

type Options<O> = O extends { parameters: infer P }
  ? Parameters<P> & Body<O> & Omit<RequestOptions, "body" | "method">
  : never;

/** The options of a request, which can be omitted if the endpoint requires none. */
type Given<O> = Record<never, never> extends O ? [options?: O] : [options: O];

/** Sends a request like `request`. */
export type Call<Paths> = <P extends keyof Paths & string, M extends MethodOf<Paths[P]>>(
  method: M,
  path: P,
  ...options: Given<Options<Paths[P][M]>>
) => Promise<Answer<Paths[P][M]>>;

interface AnyOptions extends RequestOptions {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
}

/** Returns the function that sends requests to the endpoints in an OpenAPI document. */
export function endpoints<Paths>(): Call<Paths> {
  const call = (method: string, template: string, given: AnyOptions = {}) => {
    const { path = {}, query = {}, ...options } = given;
    const filled = template.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(path[name])),
    );
    return request<never>(filled + search(query), { ...options, method: method.toUpperCase() });
  };
  return call as Call<Paths>;
}

function search(query: Record<string, unknown>): string {
  const named = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(named.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}
