// `wit/wattle/tenants.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/tenants@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function setRoute(route: string, config: Json): void;
  export function getRoute(route: string): Option<Json>;
  export function removeRoute(route: string): void;
}
