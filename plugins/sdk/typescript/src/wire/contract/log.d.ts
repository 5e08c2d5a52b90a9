// `wit/wattle/log.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/log@0.1.0" {
  import type { Json } from "wattle:plugin/types@0.1.0";

  export type Level =
    | { tag: "trace" }
    | { tag: "debug" }
    | { tag: "info" }
    | { tag: "warn" }
    | { tag: "error" }
    | { tag: "other"; val: string };

  export function write(level: Level, message: string, fields: Array<[string, Json]>): void;
}
