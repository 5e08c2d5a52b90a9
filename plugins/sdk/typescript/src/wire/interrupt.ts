// Calls of `interrupt`.

import * as raw from "wattle:plugin/interrupt@0.1.0";
import type { Question } from "../interrupt.ts";
import type { Json } from "../json.ts";
import { call, rawExtra, rawOption, text, value } from "./convert.ts";

export function ask(question: Question): Json {
  const answer = call(() =>
    raw.ask({
      payload: text(question.payload),
      responseSchema: rawOption(question.responseSchema, text),
      extra: rawExtra(question.extra),
    }),
  );
  return value(answer);
}
