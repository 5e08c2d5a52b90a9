// Calls of `emit`.

import * as raw from "wattle:plugin/emit@0.1.0";
import type { Json } from "../json.ts";
import { call, rawOption, same, text } from "./convert.ts";

export function custom(name: string, data: Json): void {
  call(() => raw.custom(name, text(data)));
}

export function progress(message: string, fraction: number | undefined): void {
  call(() => raw.progress(message, rawOption(fraction, same)));
}
