// The native API of the host, typed by its OpenAPI document.
import createClient, { type Client } from "openapi-fetch";
import { connectedFetch } from "./index.ts";
import type { components, paths } from "./schema.d.ts";

/** The documents of the native API by name. */
export type Schemas = components["schemas"];

/**
 * Creates a client of the native API at the root of the page's origin. The own address of an app
 * serves only the app, so a page gets what it needs there from the app's endpoints.
 */
export function nativeApi(): Client<paths> {
  const baseUrl = new URL(document.baseURI).origin;
  return createClient<paths>({ baseUrl, fetch: (input) => connectedFetch(input) });
}
