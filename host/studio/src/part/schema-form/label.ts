// Names of fields, alternatives and values, which schemas contain.
import { cut } from "../cut.ts";
import { visible } from "../text.tsx";
import type { Field } from "./field.ts";
import { LABEL_CHARS } from "./limits.ts";
import { TEXTS } from "./texts.ts";

/** Returns the first characters of a text of a stranger, with all that can be seen. */
export function shown(text: string, chars: number = LABEL_CHARS): string {
  return visible(cut(text, chars));
}

/** Returns the label of a field: the title in its schema, or else its name. */
export function labelOf({ title }: Field, name: string): string {
  return shown(title === undefined || title === "" ? name : title);
}

/** Returns the name of a value. */
export function valueName({ value, name }: { value: unknown; name?: string | undefined }): string {
  if (name !== undefined && name !== "") return shown(name);
  return shown(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

/** Returns the name of an alternative: its title, its constant, or the type of its values. */
export function optionName(field: Field, index: number): string {
  const { title, schema } = field;
  if (title !== undefined && title !== "") return shown(title);
  const constants = constantsOf(field);
  if (constants.length > 0) return constants.map((value) => valueName({ value })).join(", ");
  const type = typeof schema === "object" ? schema.type : undefined;
  return typeof type === "string" ? shown(type) : TEXTS.option(index + 1);
}

/** Returns the constants that tell an alternative from others. */
export function constantsOf(field: Field): readonly unknown[] {
  if (field.kind === "const") return [field.value];
  if (field.kind !== "object") return [];
  return field.properties.flatMap(({ field: of }) => (of.kind === "const" ? [of.value] : []));
}
