// The fields of a form, made of a schema. A part of the schema without a field of its own is edited
// as JSON.
import { FORM_FIELDS } from "./limits.ts";
import { hasOnly, resolved, type Schema, type SchemaObject } from "./schema.ts";

export interface Property {
  name: string;
  field: Field;
  isRequired: boolean;
}

interface Common {
  title?: string | undefined;
  description?: string | undefined;
  /** The value at first. */
  initial?: unknown;
  /** What the value must fit. */
  schema: Schema;
}

export type ObjectField = Common & { kind: "object"; properties: readonly Property[] };
export type ListField = Common & { kind: "list"; item: Field };
export type ChoiceField = Common & { kind: "choice"; options: readonly Field[] };
export type EnumField = Common & {
  kind: "enum";
  values: readonly { value: unknown; name?: string | undefined }[];
};
export type TextField = Common & { kind: "text"; format?: string | undefined; isLong: boolean };
export type NumberField = Common & { kind: "number"; isInteger: boolean };

export type Field =
  | ObjectField
  | ListField
  | ChoiceField
  | EnumField
  | TextField
  | NumberField
  | (Common & { kind: "const"; value: unknown })
  | (Common & { kind: "boolean" })
  | (Common & { kind: "json" });

/** Length up to which a text is a line. A field of one line removes line breaks from its text. */
const LINE_CHARS = 200;

/** Thrown for a schema with too many fields. */
class TooMany extends Error {}

/** Returns the field for values of a schema, one of JSON if the schema exceeds a limit. */
export function fieldOf(schema: unknown): Field {
  const whole = resolved(schema);
  if (whole === undefined) return { kind: "json", schema: true };
  try {
    return new Planner().field(whole);
  } catch (error) {
    if (error instanceof TooMany) return { kind: "json", schema: whole, ...about(whole) };
    throw error;
  }
}

function about(schema: Schema): Pick<Common, "title" | "description" | "initial"> {
  if (typeof schema === "boolean") return {};
  return { title: schema.title, description: schema.description, initial: schema.default };
}

class Planner {
  #fields = 0;

  field(of: Schema): Field {
    this.#fields += 1;
    if (this.#fields > FORM_FIELDS) throw new TooMany();
    const schema = unwrapped(of);
    const common = { schema, ...about(schema) };
    if (typeof schema === "boolean") return { kind: "json", ...common };
    if (Object.hasOwn(schema, "const")) return { kind: "const", value: schema.const, ...common };
    const values = valuesOf(schema);
    if (values !== undefined) return { kind: "enum", values, ...common };
    const options = optionsOf(schema);
    if (options === undefined) return this.#plain(schema, common);
    return { kind: "choice", options: options.map((option) => this.field(option)), ...common };
  }

  #plain(schema: SchemaObject, common: Common): Field {
    const { type, allOf, anyOf, oneOf, properties } = schema;
    const json: Field = { kind: "json", ...common };
    if ([allOf, anyOf, oneOf, schema.if].some((part) => part !== undefined)) return json;
    if (type === "boolean") return { kind: "boolean", ...common };
    if (type === "null") return { kind: "const", value: null, ...common };
    if (type === "number" || type === "integer") {
      return { kind: "number", isInteger: type === "integer", ...common };
    }
    if (type === "string") return this.#text(schema, common);
    if (type === "array") return this.#list(schema, common);
    if ((type === "object" || type === undefined) && properties !== undefined) {
      return this.#object(schema, properties, common);
    }
    return json;
  }

  #text({ format, hint, maxLength }: SchemaObject, common: Common): Field {
    const known = format ?? hint;
    const isLong = known === undefined && (maxLength === undefined || maxLength > LINE_CHARS);
    return { kind: "text", format: known, isLong, ...common };
  }

  #list({ items, prefixItems }: SchemaObject, common: Common): Field {
    if (typeof items !== "object" || prefixItems !== undefined) return { kind: "json", ...common };
    return { kind: "list", item: this.field(items), ...common };
  }

  #object(schema: SchemaObject, parts: Record<string, Schema>, common: Common): Field {
    const entries = Object.entries(parts);
    if (entries.length === 0) return { kind: "json", ...common };
    const required = new Set(schema.required);
    const properties = entries.map(([name, part]) => ({
      name,
      field: this.field(part),
      isRequired: required.has(name),
    }));
    return { kind: "object", properties, ...common };
  }
}

/** Returns the only part of a schema that consists of one part, with the annotations around it. */
function unwrapped(schema: Schema): Schema {
  if (typeof schema === "boolean") return schema;
  for (const key of ["allOf", "anyOf", "oneOf"] as const) {
    const [only, second] = schema[key] ?? [];
    if (typeof only !== "object" || second !== undefined || !hasOnly(schema, key)) continue;
    const { [key]: _, ...annotations } = schema;
    return unwrapped({ ...only, ...annotations });
  }
  return schema;
}

/** Returns the values of a schema that lists them. */
function valuesOf(schema: SchemaObject): EnumField["values"] | undefined {
  if (schema.enum !== undefined) return schema.enum.map((value) => ({ value }));
  const parts = schema.oneOf ?? schema.anyOf;
  if (parts === undefined || parts.length < 2 || !hasOnly(schema, "oneOf", "anyOf", "type")) {
    return undefined;
  }
  const values = parts.flatMap((part) =>
    typeof part === "object" && Object.hasOwn(part, "const") && hasOnly(part, "const", "type")
      ? [{ value: part.const, name: part.title ?? part.description }]
      : [],
  );
  return values.length === parts.length ? values : undefined;
}

/** Returns the alternatives of a schema that has some. */
function optionsOf(schema: SchemaObject): readonly Schema[] | undefined {
  const { type, oneOf, anyOf } = schema;
  const parts = oneOf ?? anyOf;
  if (parts !== undefined) {
    if (oneOf !== undefined && anyOf !== undefined) return undefined;
    return joined(without(schema, "oneOf", "anyOf"), parts);
  }
  if (Array.isArray(type)) return type.map((one) => ({ ...without(schema, "default"), type: one }));
  return conditional(schema);
}

function without(schema: SchemaObject, ...keywords: readonly string[]): SchemaObject {
  const entries = Object.entries(schema).filter(([key]) => !keywords.includes(key));
  return Object.fromEntries(entries);
}

/** Returns each alternative with what all of them have; `undefined` if they cannot be joined. */
function joined(base: SchemaObject, parts: readonly Schema[]): readonly Schema[] | undefined {
  if (hasOnly(base)) return parts;
  if (hasOnly(base, "type") && base.type !== "object") return parts;
  const options = parts.map((part) => both(base, part));
  return options.every((option) => option !== undefined) ? options : undefined;
}

const OF_OBJECTS = ["type", "properties", "required", "additionalProperties"];

/** Returns a schema of objects for what fits both schemas; `undefined` if this is not so simple. */
function both(base: SchemaObject, part: Schema): SchemaObject | undefined {
  if (part === true) return without(base, "title", "description", "default");
  if (part === false) return undefined;
  if (!hasOnly(base, ...OF_OBJECTS) || !hasOnly(part, ...OF_OBJECTS)) return undefined;
  if ([base, part].some(({ type = "object" }) => type !== "object")) return undefined;
  // Each of them would refuse the properties of the other one.
  if (base.additionalProperties !== undefined || part.additionalProperties !== undefined) {
    return undefined;
  }
  return {
    ...(part.title === undefined ? {} : { title: part.title }),
    type: "object",
    properties: { ...base.properties, ...part.properties },
    required: [...new Set([...(base.required ?? []), ...(part.required ?? [])])],
  };
}

/**
 * Returns the alternatives of an object of which a property decides about others, as in an
 * elicitation: `if` the property has a value, `then` a schema fits, too.
 */
function conditional(schema: SchemaObject): readonly Schema[] | undefined {
  const { if: condition, then: rest = true, else: other = true, properties = {} } = schema;
  if (typeof condition !== "object" || !hasOnly(condition, "properties", "required", "type")) {
    return undefined;
  }
  const [[name, test] = [""], second] = Object.entries(condition.properties ?? {});
  const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (second !== undefined || typeof test !== "object" || typeof property !== "object") {
    return undefined;
  }
  if (!Object.hasOwn(test, "const") || !hasOnly(test, "const") || property.enum === undefined) {
    return undefined;
  }
  const base = without(schema, "if", "then", "else");
  const options = property.enum.map((value) => {
    const chosen = both(base, value === test.const ? rest : other);
    return chosen && { ...chosen, properties: { ...chosen.properties, [name]: { const: value } } };
  });
  const known = options.filter((option) => option !== undefined);
  return known.length === options.length && known.length > 0 ? known : undefined;
}
