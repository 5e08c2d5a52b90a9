// `wit/wattle/emit.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/emit@0.1.0" {
  import type { Json, Option } from "wattle:plugin/types@0.1.0";

  export function custom(name: string, data: Json): void;
  export function progress(message: string, fraction: Option<number>): void;
}
