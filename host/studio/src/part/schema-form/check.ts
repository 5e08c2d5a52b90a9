// Checks what a user has entered. The host checks each answer in any case.
import { type OutputUnit, Validator } from "@cfworker/json-schema";
import { visible } from "../text.tsx";
import { type Draft, draftOf, pathOf, readDraft } from "./draft.ts";
import type { Field } from "./field.ts";
import { LABEL_CHARS } from "./limits.ts";
import type { Schema, SchemaObject } from "./schema.ts";
import { TEXTS } from "./texts.ts";

export interface Checked {
  value: unknown;
  /** Problems by the path of their field; that of the whole form is empty. */
  errors: ReadonlyMap<string, string>;
}

/** Keywords whose errors only say that there are errors below. */
const AROUND = new Set([
  "properties",
  "items",
  "prefixItems",
  "additionalProperties",
  "allOf",
  "if",
]);

const MISSING = /^Instance does not have required property "([\s\S]*)"\.$/;

/** Returns the value of a draft, and what is wrong with it. */
export function checked(field: Field, draft: Draft): Checked {
  const errors = new Map<string, string>();
  const report = (path: string, problem: string) => {
    if (!errors.has(path)) errors.set(path, visible(problem));
  };
  const value = readDraft(field, draft, "", report);
  if (value === undefined) report("", field.kind === "choice" ? TEXTS.choose : TEXTS.missing);
  if (errors.size > 0) return { value, errors };
  const paths = new Set<string>();
  const schema = schemaOf(field, draft, "", paths);
  for (const unit of violations(schema, value)) {
    const [path, problem] = described(unit);
    const shown = shownAt(path, paths);
    report(shown, shown === path ? problem : `${path.slice(shown.length)}: ${problem}`);
  }
  return { value, errors };
}

/** Returns the violations of a schema; none if it cannot be evaluated. */
function violations(schema: Schema, value: unknown): readonly OutputUnit[] {
  if (schema === true) return [];
  try {
    // The types of the package do not know that a subschema can be a boolean.
    const validator = new Validator(schema as never, "2020-12", false);
    return validator.validate(value).errors.filter(({ keyword }) => !AROUND.has(keyword));
  } catch {
    // Such as a name with half of a character. The host checks the value.
    return [];
  }
}

/**
 * Returns the schema of what a user has chosen: of the alternatives only the chosen one, so that
 * its errors are those of its fields. Collects the paths of the fields that are shown.
 */
function schemaOf(field: Field, draft: Draft, path: string, paths: Set<string>): Schema {
  paths.add(path);
  const { schema } = field;
  if (typeof schema === "boolean") return schema;
  if (draft.kind === "choice" && field.kind === "choice") {
    const option = field.options[draft.index];
    if (option === undefined) return schema;
    return schemaOf(option, draft.drafts[draft.index] ?? draftOf(option), path, paths);
  }
  if (draft.kind === "list" && field.kind === "list") {
    const items = draft.items.map((item, at) =>
      schemaOf(field.item, item.draft, pathOf(path, at), paths),
    );
    return { ...schema, prefixItems: items };
  }
  if (draft.kind === "object" && field.kind === "object") {
    const properties: SchemaObject["properties"] = Object.fromEntries(
      field.properties.map(({ name, field: of }) => {
        const at = pathOf(path, name);
        const entered = draft.drafts.get(name);
        if (entered === undefined) paths.add(at);
        return [name, entered === undefined ? of.schema : schemaOf(of, entered, at, paths)];
      }),
    );
    return { ...schema, properties };
  }
  return schema;
}

/** Returns the path of the field in which a path is. */
function shownAt(path: string, paths: ReadonlySet<string>): string {
  let at = path;
  while (at !== "" && !paths.has(at)) at = at.slice(0, at.lastIndexOf("/"));
  return at;
}

function described({ instanceLocation, keyword, error }: OutputUnit): [string, string] {
  const path = decoded(instanceLocation.slice(1));
  const [, missing] = (keyword === "required" && MISSING.exec(error)) || [];
  if (missing !== undefined) return [pathOf(path, missing), TEXTS.missing];
  if (keyword === "false") return [path, TEXTS.notAllowed];
  if (keyword === "enum") return [path, TEXTS.notListed];
  return [path, error.slice(0, LABEL_CHARS)];
}

function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}
