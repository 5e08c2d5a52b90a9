// The OpenAPI descriptions of the endpoints of a plugin.
//
// A type with an id (`.meta({ id: "Item" })`) becomes a schema with this name, which all endpoints
// share; other types are part of the operation. The schema of a type in requests describes what the
// type reads, and its schema in responses what it writes. If the two differ, the schema in requests has
// a name of its own.

import { $ZodRegistry, type $ZodType } from "zod/v4/core";
import { Failure } from "../failure.ts";
import { type Extra, isOptional, type Json, type Type } from "../json.ts";
import { type Metadata, metadataOf } from "../metadata.ts";
import { type Direction, schemaOf } from "../schema.ts";
import type { EndpointTypes, HandlerEntry } from "./handler.ts";

/** Place of the schemas in an OpenAPI document. */
const SCHEMAS = "#/components/schemas/";

/** Place of the definitions in a JSON Schema. */
const DEFINITIONS = "#/$defs/";

/** Beginning of the names that zod gives to recursive types without an id. */
const UNNAMED = "__";

/** Suffix of the name of a schema in requests that differs from the schema in responses. */
const REQUEST_SUFFIX = ".Request";

/** Key of the response for all statuses without one of their own. */
const DEFAULT = "default";

const JSON_TYPE = "application/json";
const EVENTS_TYPE = "text/event-stream";

/** The operations of endpoints in the order of their entries, and the schemas they refer to. */
interface Described {
  operations: Extra[];
  schemas: Extra;
}

/** A registry that has the names of types. Two types of a document have different names. */
class Names extends $ZodRegistry<Record<string, unknown>> {
  readonly #types = new Map<string, $ZodType>();

  override get(type: $ZodType): Metadata | undefined {
    const metadata = metadataOf(type);
    const { id } = metadata ?? {};
    if (id === undefined) return metadata;
    const known = this.#types.get(id) ?? type;
    if (known !== type) throw new Error(`two types have the id \`${id}\``);
    this.#types.set(id, type);
    return metadata;
  }

  override has(type: $ZodType): boolean {
    return metadataOf(type) !== undefined;
  }
}

function describe(entries: readonly HandlerEntry[]): Described {
  const schemas: Record<Direction, Extra> = { input: {}, output: {} };
  const names = new Names();
  const operations = entries.map((entry) => operationOf(entry, schemas, names));
  const renamed = different(schemas.input, schemas.output);
  const named = Object.entries(schemas.input).map(([name, schema]) => {
    return [renamed.has(name) ? name + REQUEST_SUFFIX : name, rename(schema, renamed)] as const;
  });
  const all = { ...schemas.output, ...Object.fromEntries(named) };
  for (const operation of operations) {
    for (const part of ["parameters", "requestBody"]) {
      if (operation[part] !== undefined) operation[part] = rename(operation[part], renamed);
    }
  }
  return { operations, schemas: all };
}

function operationOf(entry: HandlerEntry, schemas: Record<Direction, Extra>, names: Names): Extra {
  const { method, path, types } = entry;
  const what = (part: string) => `the ${part} of \`${method} ${path}\``;
  const schema = (part: string, type: Type, io: Direction) => {
    return named(what(part), schemaOf(what(part), type, io, names), type, schemas[io]);
  };
  const [first = "", ...rest] = (types.doc ?? "").trim().split(/\n\s*\n/);
  const summary = first.replace(/\s*\n\s*/g, " ");
  const description = rest.join("\n\n");
  const parameters = parametersOf(path, types, (name, type) => {
    return schema(`query parameter ${name}`, type, "input");
  });
  const body = types.body;
  const content = body && { [JSON_TYPE]: { schema: schema("body", body, "input") } };
  return {
    ...(summary === "" ? {} : { summary }),
    ...(description === "" ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(content ? { requestBody: { required: !isOptional(body), content } } : {}),
    responses: responsesOf(types, (part, type) => schema(part, type, "output")),
  };
}

function parametersOf(
  path: string,
  types: EndpointTypes<Type>,
  schema: (name: string, type: Type) => Json,
): Json[] {
  // `{name}`, or `{*name}` for the rest of the path.
  const names = path.split("/").flatMap((part) => /^\{\*?(.*)\}$/.exec(part)?.[1] ?? []);
  const ofPath = names.map((name) => {
    return { name, in: "path", required: true, schema: { type: "string" } };
  });
  const ofQuery = Object.entries(types.query ?? {}).map(([name, type]) => {
    return { name, in: "query", required: !isOptional(type), schema: schema(name, type) };
  });
  return [...ofPath, ...ofQuery];
}

function responsesOf(
  types: EndpointTypes<Type>,
  schema: (part: string, type: Type) => Json,
): Extra {
  const contents = new Map<string, Extra>();
  const add = (status: string, mediaType?: string, body?: Json) => {
    const content = contents.get(status) ?? {};
    if (mediaType !== undefined) content[mediaType] = { schema: body ?? {} };
    contents.set(status, content);
  };
  for (const [status, type] of returned(types)) {
    if (type === undefined) add(status);
    else add(status, JSON_TYPE, schema(`response ${status}`, type));
  }
  if (types.events) add("200", EVENTS_TYPE, schema("events", types.events));
  if (types.bytes !== undefined) add("200", types.bytes, { type: "string" });
  if (types.error) add(DEFAULT, JSON_TYPE, schema("error", types.error));
  // OpenAPI demands a response.
  if (contents.size === 0) return { [DEFAULT]: { description: "Response" } };
  const byStatus = [...contents].sort(([one], [other]) => (one < other ? -1 : 1));
  const responses = byStatus.map(([status, content]): [string, Extra] => {
    const isError = status === DEFAULT || /^[45]/.test(status);
    const response: Extra = { description: isError ? "Error" : "Success" };
    if (Object.keys(content).length > 0) response.content = content;
    return [status, response];
  });
  return Object.fromEntries(responses);
}

function returned({ returns }: EndpointTypes<Type>): Array<[string, Type | undefined]> {
  if (returns === undefined) return [];
  return isType(returns) ? [["200", returns]] : Object.entries(returns);
}

function isType(value: object): value is Type {
  return "_zod" in value;
}

/** Moves the named parts of a schema to the named schemas, and returns the rest. */
function named(what: string, schema: Json, type: Type, schemas: Extra): Json {
  const { $defs = {}, id: _, ...rest } = schema as Extra;
  const id = metadataOf(type)?.id;
  const own = (reference: string) => {
    const name = reference === "#" ? id : after(reference, DEFINITIONS);
    if (name === undefined || name.startsWith(UNNAMED)) {
      throw Failure.invalid(`${what} is recursive; name the type with \`.meta({ id: "Name" })\``);
    }
    return SCHEMAS + name;
  };
  for (const [name, definition] of Object.entries($defs as Extra)) {
    const { id: _, ...described } = definition as Extra;
    schemas[name] = mapReferences(described, own);
  }
  const moved = mapReferences(rest, own);
  if (id === undefined || "$ref" in rest) return moved;
  schemas[id] = moved;
  return { $ref: SCHEMAS + id };
}

function rename(document: Json, renamed: ReadonlySet<string>): Json {
  return mapReferences(document, (reference) => {
    const name = after(reference, SCHEMAS);
    return name !== undefined && renamed.has(name) ? reference + REQUEST_SUFFIX : reference;
  });
}

function after(text: string, prefix: string): string | undefined {
  return text.startsWith(prefix) ? text.slice(prefix.length) : undefined;
}

function mapReferences(document: Json, map: (reference: string) => string): Json {
  if (Array.isArray(document)) return document.map((item) => mapReferences(item, map));
  if (document === null || typeof document !== "object") return document;
  const fields = Object.entries(document).map(([key, value]) => {
    const isReference = key === "$ref" && typeof value === "string";
    return [key, isReference ? map(value) : mapReferences(value, map)] as const;
  });
  return Object.fromEntries(fields);
}

/**
 * Returns the names of the schemas that differ between requests and responses, themselves or in the
 * schemas that they refer to.
 */
function different(requests: Extra, responses: Extra): Set<string> {
  let known = new Set<string>();
  for (;;) {
    const found = Object.entries(requests).filter(([name, schema]) => {
      const other = responses[name];
      if (other === undefined) return false;
      return !isEqual(other, schema) || [...references(schema)].some((it) => known.has(it));
    });
    if (found.length === known.size) return known;
    known = new Set(found.map(([name]) => name));
  }
}

function isEqual(one: Json, other: Json): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).map(([key, part]) => [key, sorted(part)] as const);
  return Object.fromEntries(fields.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Returns the names of the schemas that a document refers to. */
function references(document: Json): Set<string> {
  const names = new Set<string>();
  mapReferences(document, (reference) => {
    const name = after(reference, SCHEMAS);
    if (name !== undefined) names.add(name);
    return reference;
  });
  return names;
}

/**
 * Returns the extension field `openapi` of each route: its operation, and the schemas that the
 * operation refers to.
 */
export function describeRoutes(entries: readonly HandlerEntry[]): Extra[] {
  const { operations, schemas } = describe(entries);
  return operations.map((operation) => {
    const names = references(operation);
    // A set iterates over names that are added meanwhile.
    for (const name of names) {
      for (const next of references(schemas[name] ?? null)) names.add(next);
    }
    const own = [...names].sort().flatMap((name) => {
      const schema = schemas[name];
      return schema === undefined ? [] : [[name, schema] as const];
    });
    return { operation, schemas: Object.fromEntries(own) };
  });
}

/** Returns the OpenAPI document of endpoints. */
export function openapi(title: string, entries: readonly HandlerEntry[]): Extra {
  const { operations, schemas } = describe(entries);
  const paths: Record<string, Extra> = {};
  entries.forEach((entry, index) => {
    const path = entry.path.replaceAll("{*", "{");
    paths[path] = { ...paths[path], [entry.method.toLowerCase()]: operations[index] ?? {} };
  });
  return sorted({
    openapi: "3.1.0",
    // OpenAPI demands a version. That of the app is in its manifest.
    info: { title, version: "1" },
    paths,
    components: { schemas },
  }) as Extra;
}
