// `wit/wattle/reducer.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/reducer@0.1.0" {
  import type { Extra } from "wattle:plugin/types@0.1.0";

  export interface ReducerInfo {
    name: string;
    doc: string;
    extra: Extra;
  }
}
