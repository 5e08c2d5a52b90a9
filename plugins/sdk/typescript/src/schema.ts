// JSON Schemas of types, in the form that all SDKs share: draft 2020-12 with subschemas in place,
// without `$schema` and without a title of the root.

import { $ZodRegistry, type $ZodType, type JSONSchema, toJSONSchema } from "zod/v4/core";
import { Failure } from "./failure.ts";
import type { Extra, Json, Type } from "./json.ts";
import { metadataOf } from "./metadata.ts";

/** Keywords of JSON Schema that contain values and not schemas. */
const VALUES = ["const", "default", "enum", "examples"];

/** The direction in which values of a type go: into the plugin or out of it. */
export type Direction = "input" | "output";

/** Returns the schema for reading a type. `what` names the type in the failure. */
export function inputSchema(what: string, type: Type): Json {
  return schemaOf(what, type, "input", new Unnamed());
}

/** Returns the schema for writing a type. `what` names the type in the failure. */
export function outputSchema(what: string, type: Type): Json {
  return schemaOf(what, type, "output", new Unnamed());
}

/** Returns the schema of an object without properties. */
export function emptyObjectSchema(): Extra {
  return { type: "object", properties: {} };
}

/**
 * Returns the schema of a type. Types with an `id` in the registry become definitions, to which the
 * schema refers.
 */
export function schemaOf(
  what: string,
  type: Type,
  io: Direction,
  metadata: $ZodRegistry<Record<string, unknown>>,
): Json {
  let schema: Json;
  try {
    schema = toJSONSchema(type, { io, metadata, override: withoutDefaults }) as unknown as Json;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw Failure.invalid(`${what} has no JSON Schema: ${why}`, { cause: error });
  }
  // The conversion adds properties that JSON cannot have.
  const plain = JSON.parse(JSON.stringify(schema)) as Extra;
  delete plain.$schema;
  delete plain.title;
  return common(plain);
}

/** A registry that has the metadata of types except for their ids, so that nothing is a reference. */
class Unnamed extends $ZodRegistry<Record<string, unknown>> {
  override get(type: $ZodType): Record<string, unknown> | undefined {
    const { id: _, ...rest } = metadataOf(type) ?? {};
    return rest;
  }

  override has(type: $ZodType): boolean {
    return metadataOf(type) !== undefined;
  }
}

/** Removes what zod adds to the schema of a type without the author's saying so. */
function withoutDefaults(context: {
  zodSchema: $ZodType;
  jsonSchema: JSONSchema.BaseSchema;
}): void {
  const { def } = context.zodSchema._zod as unknown as {
    def: { type: string; catchall?: unknown };
  };
  const schema = context.jsonSchema;
  if (def.type === "object" && def.catchall === undefined) delete schema.additionalProperties;
  if (schema.type === "integer") {
    if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
    if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  }
  const { propertyNames } = schema;
  if (def.type === "record" && JSON.stringify(propertyNames) === '{"type":"string"}') {
    delete schema.propertyNames;
  }
}

/** Writes a type that may be null as a list of types, as all versions of zod and all SDKs do. */
function common(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(common);
  if (schema === null || typeof schema !== "object") return schema;
  const parts = Object.entries(schema).map(([key, part]) => {
    return [key, VALUES.includes(key) ? part : common(part)] as const;
  });
  return nullable(Object.fromEntries(parts));
}

function nullable(schema: Extra): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [inner, none] = anyOf as [Json, Json];
  if (JSON.stringify(none) !== '{"type":"null"}' || !isObject(inner)) return schema;
  if (typeof inner.type !== "string" || inner.type === "null") return schema;
  const { const: constant, ...others } = inner;
  const values = constant !== undefined ? [constant] : inner.enum;
  const enumeration: Extra = Array.isArray(values) ? { enum: [...values, null] } : {};
  return { ...others, type: [inner.type, "null"], ...enumeration, ...rest };
}

function isObject(value: Json): value is Extra {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
