// A JSON Schema whose references are resolved, and of which only those keywords are left that a
// browser can check in bounded time.
import { SCHEMA_DEPTH, SCHEMA_PARTS } from "./limits.ts";

/** The keywords of a schema that are known. */
export interface SchemaObject {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  title?: string;
  description?: string;
  default?: unknown;
  format?: string;
  /** A format that is not checked. It only selects a field. */
  hint?: string;
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  propertyNames?: Schema;
  items?: Schema;
  prefixItems?: Schema[];
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  if?: Schema;
  then?: Schema;
  else?: Schema;
  maxLength?: number;
  [keyword: string]: unknown;
}

export type Schema = boolean | SchemaObject;

/** Formats that are checked. The expressions for the other ones may take long. */
const FORMATS = new Set(["date", "time", "date-time", "email", "uuid", "ipv4", "ipv6"]);

const NUMBERS = [
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
];

const TEXTS = ["title", "description"];

/** Keywords that say nothing about a value. */
const ANNOTATIONS = new Set([
  ...TEXTS,
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "$schema",
  "$id",
  "id",
  "$comment",
  "$defs",
  "definitions",
]);

const PARTS = ["additionalProperties", "propertyNames"];

/** Keywords that are read below. */
const READ = new Set([
  ...NUMBERS,
  ...PARTS,
  "type",
  "const",
  "enum",
  "format",
  "required",
  "properties",
  "uniqueItems",
  "items",
  "prefixItems",
  "additionalItems",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "$ref",
]);

/** Thrown for a schema that exceeds a limit. */
class TooLarge extends Error {}

/**
 * Returns the schema with its references resolved, `undefined` if it exceeds a limit. The result
 * permits each value that the schema permits. It may permit others: remote references are not
 * read, patterns are not evaluated, and a schema within itself is resolved once.
 */
export function resolved(schema: unknown): Schema | undefined {
  try {
    return new Resolver(schema).part(schema, 0, []);
  } catch (error) {
    if (error instanceof TooLarge) return undefined;
    throw error;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

class Resolver {
  readonly #root: unknown;
  #parts = 0;
  /** Number of keywords that were left out, so that the result permits more values. */
  #loosened = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** Resolves a part of the schema. `refs` are the references that led to it. */
  part(schema: unknown, depth: number, refs: readonly string[]): Schema {
    this.#parts += 1;
    if (this.#parts > SCHEMA_PARTS || depth > SCHEMA_DEPTH) throw new TooLarge();
    if (typeof schema === "boolean") return schema;
    // References in a part with an address of its own are relative to this address.
    if (!isObject(schema) || (depth > 0 && typeof schema.$id === "string")) return this.#any();
    const next = (part: unknown) => this.part(part, depth + 1, refs);
    const result: SchemaObject = {};
    this.#copy(schema, result);
    this.#objects(schema, result, next);
    this.#arrays(schema, result, next);
    this.#combine(schema, result, next);
    if (Object.keys(schema).some((key) => !READ.has(key) && !ANNOTATIONS.has(key))) {
      this.#loosened += 1;
    }
    if (typeof schema.$ref !== "string") return result;
    return combined(result, this.#reference(schema.$ref, depth, refs));
  }

  /** A part that permits everything, in place of one that is not read. */
  #any(): true {
    this.#loosened += 1;
    return true;
  }

  #copy(schema: Record<string, unknown>, result: SchemaObject): void {
    const { type, required, format } = schema;
    if (typeof type === "string" || isTexts(type)) result.type = type;
    if (isTexts(required)) result.required = required;
    if (Object.hasOwn(schema, "const")) result.const = schema.const;
    if (Object.hasOwn(schema, "default")) result.default = schema.default;
    if (Array.isArray(schema.enum)) result.enum = schema.enum;
    if (schema.uniqueItems === true) result.uniqueItems = true;
    if (typeof format === "string") result[FORMATS.has(format) ? "format" : "hint"] = format;
    for (const key of NUMBERS) if (typeof schema[key] === "number") result[key] = schema[key];
    for (const key of TEXTS) if (typeof schema[key] === "string") result[key] = schema[key];
  }

  #objects(
    schema: Record<string, unknown>,
    result: SchemaObject,
    next: (part: unknown) => Schema,
  ): void {
    const { properties } = schema;
    if (isObject(properties)) {
      const entries = Object.entries(properties);
      result.properties = Object.fromEntries(entries.map(([name, part]) => [name, next(part)]));
    }
    for (const key of PARTS) {
      // What is additional depends on patterns, which are not evaluated.
      const isUnknown = key === "additionalProperties" && schema.patternProperties !== undefined;
      if (schema[key] !== undefined && !isUnknown) result[key] = next(schema[key]);
    }
  }

  #arrays(
    schema: Record<string, unknown>,
    result: SchemaObject,
    next: (part: unknown) => Schema,
  ): void {
    // Drafts before 2020-12 have the first items under `items`.
    const isOld = Array.isArray(schema.items);
    const first = isOld ? schema.items : schema.prefixItems;
    const items = isOld ? schema.additionalItems : schema.items;
    if (Array.isArray(first)) result.prefixItems = first.map(next);
    if (items !== undefined) result.items = next(items);
  }

  #combine(
    schema: Record<string, unknown>,
    result: SchemaObject,
    next: (part: unknown) => Schema,
  ): void {
    for (const key of ["allOf", "anyOf"] as const) {
      const parts = schema[key];
      if (Array.isArray(parts)) result[key] = parts.map(next);
    }
    const { oneOf } = schema;
    if (Array.isArray(oneOf)) {
      const [parts, isLoose] = this.#watched(() => oneOf.map(next));
      // More than one of them may fit, since they permit more.
      if (!isLoose) result.oneOf = parts;
      else if (result.anyOf === undefined) result.anyOf = parts;
      else result.allOf = [...(result.allOf ?? []), { anyOf: parts }];
    }
    if (schema.not !== undefined) {
      const [part, isLoose] = this.#watched(() => next(schema.not));
      if (!isLoose) result.not = part;
    }
    if (schema.if === undefined) return;
    const [condition, isLoose] = this.#watched(() => next(schema.if));
    if (isLoose) return;
    result.if = condition;
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    if (schema.then !== undefined) result.then = next(schema.then);
    if (schema.else !== undefined) result.else = next(schema.else);
  }

  /** Returns what `read` returns, and true if it left keywords out. */
  #watched<T>(read: () => T): [T, boolean] {
    const before = this.#loosened;
    const value = read();
    return [value, this.#loosened > before];
  }

  #reference(ref: string, depth: number, refs: readonly string[]): Schema {
    const isLoop = refs.filter((known) => known === ref).length > 1;
    const target = isLoop ? undefined : this.#target(ref);
    if (target === undefined) return this.#any();
    return this.part(target, depth + 1, [...refs, ref]);
  }

  /** Returns the part to which a reference leads; `undefined` for one that is not in the schema. */
  #target(ref: string): unknown {
    if (ref === "#") return this.#root;
    if (!ref.startsWith("#/")) return undefined;
    let at = this.#root;
    for (const segment of ref.slice(2).split("/")) {
      const name = unescaped(segment);
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
      at = Reflect.get(at, name);
    }
    return at;
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function unescaped(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return segment;
  }
}

/** Returns a schema for what fits both: the keywords beside a reference, and its target. */
function combined(own: SchemaObject, target: Schema): Schema {
  const keys = Object.keys(own);
  if (keys.length === 0) return target;
  const isAbout = keys.every((key) => ANNOTATIONS.has(key));
  if (isAbout && typeof target === "object") return { ...target, ...own };
  return { ...own, allOf: [...(own.allOf ?? []), target] };
}

/** Returns true if a schema has no other keywords than these and annotations. */
export function hasOnly(schema: SchemaObject, ...keywords: readonly string[]): boolean {
  return Object.keys(schema).every((key) => ANNOTATIONS.has(key) || keywords.includes(key));
}
