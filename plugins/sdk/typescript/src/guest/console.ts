// `console` in a guest: messages become log messages.

import { write } from "#host/log";
import type { Level } from "../log.ts";
import { framesOf } from "../stack.ts";
import { runs } from "./phase.ts";

/** Maximum depth of a printed value. */
const DEPTH = 6;

/** Maximum number of items or fields of a printed value. */
const ITEMS = 100;

const target = globalThis as unknown as { console: Record<string, (...values: unknown[]) => void> };

/** Prints values as one text. A text is printed as it is. */
export function print(values: readonly unknown[]): string {
  const printed = values.map((value) => (typeof value === "string" ? value : inspect(value, [])));
  return printed.join(" ");
}

/** Prints a value like JSON. Unlike JSON, this never fails, and has words for other values. */
function inspect(value: unknown, outer: readonly unknown[]): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return `[function ${value.name}]`;
  if (typeof value !== "object" || value === null) return String(value);
  if (outer.includes(value)) return "[circular]";
  if (outer.length === DEPTH) return "[...]";
  const within = [...outer, value];
  try {
    return object(value, (part) => inspect(part, within));
  } catch (error) {
    // A getter or a method of the value has failed.
    return `[${error}]`;
  }
}

function object(value: object, print: (part: unknown) => string): string {
  if (value instanceof Error) {
    return [String(value), ...framesOf(value.stack ?? "")].join("\n    at ");
  }
  if (value instanceof Date || value instanceof RegExp) return String(value);
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Map) {
    return `Map {${list([...value], ([key, part]) => `${print(key)} => ${print(part)}`)}}`;
  }
  if (value instanceof Set) return `Set {${list([...value], print)}}`;
  if (Array.isArray(value)) return `[${list(value, print)}]`;
  return `{${list(Object.entries(value), ([key, part]) => `${key}: ${print(part)}`)}}`;
}

function list<T>(items: readonly T[], print: (item: T) => string): string {
  const shown = items.slice(0, ITEMS).map(print);
  const rest = items.length - shown.length;
  return [...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join(", ");
}

function at(level: Level) {
  return (...values: unknown[]): void => {
    // The build has shown the messages of modules that are loaded.
    if (runs()) write(level, print(values), {});
  };
}

target.console = {
  debug: at("debug"),
  dir: at("info"),
  error: at("error"),
  info: at("info"),
  log: at("info"),
  trace: at("trace"),
  warn: at("warn"),
  assert: (condition, ...values) => {
    if (!condition) at("error")("assertion failed:", ...values);
  },
};
