// `wit/wattle/settings.wit` as engines show it to JavaScript. See `types.d.ts` for names and
// values.

declare module "wattle:plugin/settings@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function get(name: string): Option<Json>;
  export function all(): Json;
}
