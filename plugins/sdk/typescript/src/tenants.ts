// Model routes of the request's tenant, for web handlers through which tenants configure their own
// models.

import * as host from "#host/tenants";
import { type Json, toValue } from "./json.ts";

/**
 * Sets a model route of the tenant. `config` has the fields of the request body of
 * `PUT /api/v1/tenants/{tenant}/routes/{route}`. The host stores the API key in it and never returns
 * the key. A request without a tenant uses the routes of the default tenant.
 *
 * ```ts
 * import { handler, Request, Response, tenants } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const setModel = handler(
 *   "PUT",
 *   "/models/chat",
 *   { doc: "Lets a tenant use its own model." },
 *   (request) => {
 *     tenants.setRoute("chat", request.json());
 *     return Response.empty(204);
 *   },
 * );
 *
 * new FakeHost().run(() => {
 *   setModel.handle(new Request().withBody('{"model": "gpt-4o", "key": "sk-1"}'));
 *   // The host stores the key and never returns it.
 *   assert.deepEqual(tenants.getRoute("chat"), { model: "gpt-4o" });
 *   tenants.removeRoute("chat");
 *   assert.equal(tenants.getRoute("chat"), undefined);
 * });
 * ```
 *
 * @throws `denied` if the grant `tenant_routes` does not contain the route, `invalid` if `config` is
 * invalid, `unsupported` within a node, because a run must not change its own configuration.
 */
export function setRoute(route: string, config: unknown): void {
  host.setRoute(route, toValue("the route", config));
}

/** Returns the tenant's own route without its API key, or `undefined` if the tenant has none. */
export function getRoute(route: string): Json | undefined {
  return host.getRoute(route);
}

/** Removes the tenant's route, so that the operator's route applies again. */
export function removeRoute(route: string): void {
  host.removeRoute(route);
}
