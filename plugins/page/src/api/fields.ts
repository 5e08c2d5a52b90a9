// Documents whose type is not known.

/** The fields of a document. */
export type Fields = Record<string, unknown>;

/** Returns the fields of a document, which has none if it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
