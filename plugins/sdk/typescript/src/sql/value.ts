// Values of parameters and rows.

import { Failure } from "../failure.ts";
import { type Json, toValue } from "../json.ts";
import { encodeBase64 } from "../utf8.ts";

/** A JSON value of a column or parameter, which differs from the text of the same characters. */
export class JsonValue {
  /** The JSON value. */
  readonly value: Json;

  /** Creates a value. */
  constructor(value: Json) {
    this.value = value;
  }
}

/** A floating-point number that may have no fraction. */
export class Real {
  /** The number. */
  readonly value: number;

  /** Creates a number. */
  constructor(value: number) {
    this.value = value;
  }
}

/** A value of another database type as text, such as a decimal number, a date or a time. */
export class Other {
  /** The text of the value. */
  readonly text: string;

  /** Creates a value. */
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * An integer beyond 2^53 - 1 that the engine of the component has rounded. QuickJS has no other
 * numbers at the border of a component; StarlingMonkey gives a `bigint` in its place.
 */
export class Inexact {
  /** The rounded number. */
  readonly rounded: number;

  /** Creates a number. */
  constructor(rounded: number) {
    this.rounded = rounded;
  }

  /** Returns the failure of reading the number. */
  failure(what: string): Failure {
    return Failure.invalid(
      `${what} is an integer beyond 2^53, which QuickJS cannot read exactly; select it as text, as ` +
        "`CAST(column AS TEXT)`, or build with `--engine starlingmonkey`",
    );
  }
}

/** An SQL value. A number without a fraction is an integer, and a `bigint` always is. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | JsonValue
  | Real
  | Other
  | Inexact;

/** Makes a value a parameter of type JSON. */
export function json(value: unknown): JsonValue {
  return new JsonValue(toValue("the parameter", value));
}

/** Makes a number a floating-point parameter, also if it has no fraction. */
export function real(value: number): Real {
  return new Real(value);
}

/** Returns a value as JSON. Bytes become base64. A `bigint` and a rounded integer fail. */
export function valueToJson(what: string, value: Value): Json {
  if (value instanceof JsonValue) return value.value;
  if (value instanceof Real) return value.value;
  if (value instanceof Other) return value.text;
  if (value instanceof Uint8Array) return encodeBase64(value);
  if (value instanceof Inexact) throw value.failure(what);
  if (typeof value === "bigint") {
    throw Failure.invalid(
      `${what} is an integer beyond 2^53, which JSON in JavaScript cannot hold`,
    );
  }
  return value;
}

/** Returns a phrase for the type of a value, for error messages. */
export function kindOf(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "string") return "text";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof JsonValue) return "JSON";
  if (value instanceof Other) return "a value of the database's own type";
  if (value instanceof Real) return "a real number";
  return typeof value === "number" && !Number.isInteger(value) ? "a real number" : "an integer";
}
