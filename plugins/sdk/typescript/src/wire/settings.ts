// Calls of `settings`.

import * as raw from "wattle:plugin/settings@0.1.0";
import { option, same } from "./convert.ts";

export function get(name: string): string | undefined {
  return option(raw.get(name), same);
}

export function all(): string {
  return raw.all();
}
