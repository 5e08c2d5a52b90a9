// Implements `tenants`: stores routes of the tenant without their keys.

import type { Json } from "../../json.ts";
import { current } from "../state.ts";

export function setRoute(route: string, config: Json): void {
  const { notes, tenantRoutes } = current();
  notes.routes.push([route, config]);
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    tenantRoutes.set(route, config);
    return;
  }
  // The host never returns these fields.
  const { key: _, api_key: __, ...shown } = config;
  tenantRoutes.set(route, shown);
}

export function getRoute(route: string): Json | undefined {
  return current().tenantRoutes.get(route);
}

export function removeRoute(route: string): void {
  current().tenantRoutes.delete(route);
}
