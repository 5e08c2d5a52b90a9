// The native API of the host, typed by its OpenAPI document.
import createClient, { type Client } from "openapi-fetch";
import { connectedFetch } from "./index.ts";
import type { components, paths } from "./schema.d.ts";

/** The documents of the native API by name. */
export type Schemas = components["schemas"];

export interface NativeOptions {
  /** The address above `/api/v1`; the page's origin by default. */
  baseUrl?: string;
  /** Returns headers for a request that does not have them, such as the API key of this moment. */
  headers?: () => Record<string, string>;
}

/**
 * Creates a client of the native API, by default at the root of the page's origin. The own address
 * of an app serves only the app, so a page gets what it needs there from the app's endpoints.
 */
export function nativeApi(options: NativeOptions = {}): Client<paths> {
  const { baseUrl = new URL(document.baseURI).origin, headers } = options;
  const fetch = (request: Request) => {
    for (const [name, value] of Object.entries(headers?.() ?? {})) {
      if (!request.headers.has(name)) request.headers.set(name, value);
    }
    return connectedFetch(request);
  };
  return createClient<paths>({ baseUrl, fetch });
}
