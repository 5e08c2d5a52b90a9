// Implements `log`: records messages.

import type { Extra } from "../../json.ts";
import type { Level } from "../../log.ts";
import { currentOrNone } from "../state.ts";

export function write(level: Level, message: string, fields: Extra): void {
  // Without a fake host, the message is dropped, so that pure functions that log remain testable.
  currentOrNone()?.notes.logged.push({ level, message, fields });
}
