// Search parameters of routes: texts, which each feature checks. A parameter that is unknown or not
// valid is dropped, so that no address is an error.

/** Returns the value of a parameter, or `undefined` if it is not valid. */
export type Check<V extends string = string> = (text: string) => V | undefined;

export type Checks = Readonly<Record<string, Check>>;

/** The parameters of these checks, each of which may be absent. */
export type Search<C extends Checks> = { [K in keyof C]?: NonNullable<ReturnType<C[K]>> };

/** Characters of the longest name that a parameter can have. Ids of the host are shorter. */
const LONGEST_NAME = 256;

/** Accepts a name: a text that is neither empty nor too long. */
export const name: Check = (text) =>
  text !== "" && text.length <= LONGEST_NAME ? text : undefined;

/** Characters of the longest namespace: those of a graph at the largest depth with long names. */
const LONGEST_NAMESPACE = 8_192;

/** Accepts the namespace of a subgraph. */
export const namespace: Check = (text) =>
  text !== "" && text.length <= LONGEST_NAMESPACE ? text : undefined;

/** Digits of the largest number that JavaScript has exactly, without its last one. */
const NUMBER = /^[0-9]{1,15}$/;

/** Accepts a number without sign and fraction, as text. */
export const wholeNumber: Check = (text) => (NUMBER.test(text) ? text : undefined);

/** Accepts one of these values. */
export function oneOf<const V extends string>(values: readonly V[]): Check<V> {
  return (text) => values.find((value) => value === text);
}

/** Returns the valid parameters of a search string. */
export function readSearch<const C extends Checks>(search: string, checks: C): Search<C> {
  const params = new URLSearchParams(search);
  const entries = Object.entries(checks).flatMap(([key, check]) => {
    const text = params.get(key);
    const value = text === null ? undefined : check(text);
    return value === undefined ? [] : [[key, value] as const];
  });
  const found: unknown = Object.fromEntries(entries);
  return found as Search<C>;
}

/** Returns the search string of these parameters, empty if none has a value. */
export function writeSearch(values: Readonly<Record<string, string | undefined>>): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") params.set(key, value);
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

/** Returns the parameters with another value, or without it if the value is empty or not valid. */
export function withValue<const C extends Checks>(
  search: Search<C>,
  checks: C,
  key: keyof C & string,
  value: string,
): Search<C> {
  return readSearch(writeSearch({ ...search, [key]: value }), checks);
}

/** Reads a search string for the router, whose own reader takes texts such as `1` for numbers. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

/** Writes a search string for the router. */
export function stringifySearch(search: Record<string, unknown>): string {
  const texts = Object.entries(search).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return writeSearch(Object.fromEntries(texts));
}
