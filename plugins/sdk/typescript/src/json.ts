// JSON conversions whose errors contain the path of the invalid value.

import { type $ZodIssue, type $ZodType, type output, safeParse } from "zod/v4/core";
import { Failure } from "./failure.ts";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Extension fields: named values of a record in addition to its fixed fields. Unknown keys are
 * ignored.
 */
export type Extra = { [key: string]: Json };

/**
 * A type as a schema of [zod](https://zod.dev), also of `zod/mini`. The SDK validates values by it,
 * and derives the JSON Schema for the host.
 */
export type Type<Output = unknown, Input = unknown> = $ZodType<Output, Input>;

/** The beginning of a plural that messages are about. */
const PLURAL = /^the (?:arguments|settings|updates)\b/;

/** Messages of the engines, and of Node.js, for a recursion that exceeds the stack. */
const STACK_EXCEEDED = /call stack size exceeded|stack overflow|too much recursion/;

/** Parses JSON text. A failure contains `what` and the path of the invalid value. */
export function read<T extends Type>(what: string, text: string, type: T): output<T> {
  return fromValue(what, parse(what, text), type);
}

/** Parses JSON text without a type. */
export function parse(what: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw mistake(what, ".", error instanceof Error ? error.message : String(error));
  }
}

/** Converts a value to a type. A failure contains `what` and the path of the invalid value. */
export function fromValue<T extends Type>(what: string, value: unknown, type: T): output<T> {
  const result = safeParse(type, value);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as $ZodIssue;
  throw mistake(what, pathOf(issue), issue.message);
}

/** Converts a value to a type, or returns it as JSON if there is no type. */
export function optionally(what: string, value: Json, type?: Type): unknown {
  return type === undefined ? value : fromValue(what, value, type);
}

/** Returns the fields of an object; other values have none. */
export function fieldsOf(value: Json | undefined): Extra {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? value : {};
}

/** Returns true if a value of a type may be missing. */
export function isOptional(type: Type | undefined): boolean {
  return type?._zod.optin === "optional";
}

/** Serializes a value as JSON text. A failure contains `what`. */
export function write(what: string, value: unknown): string {
  const unfit = (key: string, why: string) => {
    const where = key === "" ? "" : ` at \`${key}\``;
    return Failure.internal(`write ${what} as JSON: the value${where} is ${why}`);
  };
  // `JSON.stringify` would write these values as `null`, as `{}`, or not at all.
  const check = function (this: unknown, key: string, part: unknown): unknown {
    if (part === undefined && Array.isArray(this)) throw unfit(key, "undefined");
    if (typeof part === "number" && !Number.isFinite(part)) throw unfit(key, String(part));
    if (typeof part === "bigint") throw unfit(key, "a BigInt; convert it to a number or a string");
    if (typeof part === "function" || typeof part === "symbol")
      throw unfit(key, `a ${typeof part}`);
    if (part instanceof Map || part instanceof Set || ArrayBuffer.isView(part)) {
      throw unfit(key, `of the class ${part.constructor.name}`);
    }
    return part;
  };
  let text: string | undefined;
  try {
    text = JSON.stringify(value, check);
  } catch (error) {
    throw isStackExceeded(error) ? tooDeep(what) : error;
  }
  if (text === undefined) throw unfit("", "undefined");
  return text;
}

/** Converts a value to the JSON that it is written as. A failure contains `what`. */
export function toValue(what: string, value: unknown): Json {
  return JSON.parse(write(what, value)) as Json;
}

/** Converts extension fields, and leaves out fields that are undefined. */
export function toExtra(fields: Readonly<Record<string, unknown>>): Extra {
  return toValue("the extension fields", fields) as Extra;
}

/** Returns the place of an issue, such as `items[0].id`; `.` is the whole value. */
export function pathOf(issue: $ZodIssue): string {
  let path = "";
  for (const part of issue.path) {
    path += typeof part === "number" ? `[${part}]` : `${path === "" ? "" : "."}${String(part)}`;
  }
  // A key that is not permitted is part of its issue and not of the path.
  const key = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  if (key !== undefined) path += `${path === "" ? "" : "."}${key}`;
  return path === "" ? "." : path;
}

function isStackExceeded(error: unknown): boolean {
  return error instanceof Error && STACK_EXCEEDED.test(error.message);
}

/** The code is that of the host, which refuses such a value if the engine does not. */
function tooDeep(what: string): Failure {
  const [verb, object] = PLURAL.test(what) ? ["are", "them"] : ["is", "it"];
  const remedy = `flatten ${object}, or store ${object} as a blob`;
  return Failure.invalid(`${what} ${verb} nested too deep for the engine; ${remedy}`);
}

function mistake(what: string, path: string, why: string): Failure {
  const verb = PLURAL.test(what) ? "are" : "is";
  const place = path === "." ? "" : ` at \`${path}\``;
  return Failure.invalid(`${what} ${verb} invalid${place}: ${why}`, { details: { path } });
}
