// Optional fields of requests and addresses.

/** Returns the values that are defined. */
export function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  const found: unknown = Object.fromEntries(defined);
  return found as { [K in keyof T]?: Exclude<T[K], undefined> };
}
