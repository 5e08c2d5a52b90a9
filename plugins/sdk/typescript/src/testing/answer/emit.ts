// Implements `emit`: records events.

import type { Json } from "../../json.ts";
import { current } from "../state.ts";

export function custom(name: string, data: Json): void {
  current().notes.emitted.push([name, data]);
}

export function progress(message: string, fraction: number | undefined): void {
  current().notes.progress.push([message, fraction]);
}
