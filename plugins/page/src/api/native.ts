// The native API of the host, typed by its own OpenAPI document.
import createClient, { type Client } from "openapi-fetch";
import { connectedFetch } from "./index.ts";
import type { components, paths } from "./schema.d.ts";

/** The documents of the native API by name. */
export type Schemas = components["schemas"];

/**
 * A client of the native API at the root of the page's origin. On an app's own address only the
 * app answers, so what a page needs there must come from the app's endpoints.
 */
export function nativeApi(baseUrl = new URL("/", document.baseURI).href): Client<paths> {
  return createClient<paths>({
    baseUrl: baseUrl.replace(/\/$/, ""),
    fetch: (input) => connectedFetch(input),
  });
}
