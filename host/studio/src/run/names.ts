// The names of rows for users.
import type { Row } from "./row.ts";
import { TEXTS } from "./texts.ts";

/** Returns the name of a row for users. */
export function nameOf({ kind, label, number = 0, detail }: Row): string {
  switch (kind) {
    case "step":
      return TEXTS.step(number);
    case "graph":
      return TEXTS.graphOf(label);
    case "attempt":
      return TEXTS.attempt(number);
    case "interrupt":
      return TEXTS.interrupt;
    case "message":
      return detail === "" ? label : detail;
    case "change":
      return TEXTS.changes[label] ?? label;
    default:
      return label === "" ? kind : label;
  }
}
