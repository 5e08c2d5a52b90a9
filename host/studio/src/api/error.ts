// A value that was thrown, as an error.

/** Returns a thrown value as an error. Not every library throws an `Error`. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
