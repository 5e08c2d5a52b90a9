// Calls of `log`.

import * as raw from "wattle:plugin/log@0.1.0";
import type { Extra } from "../json.ts";
import type { Level } from "../log.ts";
import { rawExtra } from "./convert.ts";

export function write(level: Level, message: string, fields: Extra): void {
  raw.write({ tag: level }, message, rawExtra(fields));
}
