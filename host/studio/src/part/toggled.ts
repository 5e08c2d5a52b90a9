// Sets of what is open or closed.

/** Returns a set without a value that it had, or with one that it did not have. */
export function toggled<T>(values: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(values);
  if (!next.delete(value)) next.add(value);
  return next;
}
