// `wit/wattle/interrupt.wit` as engines show it to JavaScript. See `types.d.ts` for names and
// values.

declare module "wattle:plugin/interrupt@0.1.0" {
  import type { Extra, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface Question {
    payload: Json;
    responseSchema: Option<Json>;
    extra: Extra;
  }

  export function ask(question: Question): Json;
}
