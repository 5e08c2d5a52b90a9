// Reducers for channels that no built-in reducer fits.

import type { input, output } from "zod/v4/core";
import { Failure } from "./failure.ts";
import { read, type Type, write } from "./json.ts";
import { checkName, checkSynchronous } from "./name.ts";

/** What a reducer is, besides its name and function. */
export interface ReducerDescription<V extends Type, U extends Type = V> {
  /** One paragraph for people. */
  doc?: string;
  /** Type of the channel's value. */
  value: V;
  /** Type of an update; by default that of the value. */
  update?: U;
}

/**
 * The function of a reducer. It must be pure: it may use no host call but `log`. `current` is
 * `undefined` before the first write.
 */
export type ReducerFunction<V extends Type, U extends Type> = (
  current: output<V> | undefined,
  updates: Array<output<U>>,
) => input<V>;

/** A reducer as the host sees it. */
export interface ReducerEntry {
  /** Kind of the entry. */
  readonly kind: "reducer";
  /** Name of the reducer, by which graphs refer to it. */
  readonly name: string;
  /** One paragraph for people. */
  readonly doc: string;
  /** Combines the current value with the updates. All are JSON text, and so is the result. */
  reduceText(current: string | undefined, updates: readonly string[]): string;
}

/** A reducer. {@link reducer} creates it. */
export class Reducer<V extends Type, U extends Type> implements ReducerEntry {
  readonly kind = "reducer";
  readonly name: string;
  readonly doc: string;
  readonly #value: Type;
  readonly #update: Type;
  readonly #function: ReducerFunction<V, U>;

  /** Creates a reducer. */
  constructor(name: string, description: ReducerDescription<V, U>, reduce: ReducerFunction<V, U>) {
    checkName("reducer", name);
    this.name = name;
    this.doc = description.doc ?? "";
    this.#value = description.value;
    this.#update = description.update ?? description.value;
    this.#function = reduce;
  }

  /** Calls the function of the reducer, for tests. */
  reduce(current: output<V> | undefined, updates: Array<output<U>>): input<V> {
    const returned = this.#function(current, updates);
    checkSynchronous(`reducer \`${this.name}\``, returned);
    return returned;
  }

  reduceText(current: string | undefined, updates: readonly string[]): string {
    const value =
      current === undefined ? undefined : read("the current value", current, this.#value);
    const parsed = updates.map((text, index) => read(`update ${index}`, text, this.#update));
    const reduced = this.reduce(value as output<V> | undefined, parsed as Array<output<U>>);
    if (reduced === undefined) {
      throw Failure.internal(`reducer \`${this.name}\` returned undefined`);
    }
    return write("the reduced value", reduced);
  }
}

/**
 * Declares a reducer.
 *
 * ```ts
 * import { reducer } from "wattle-plugin";
 * import * as z from "zod";
 *
 * export const max = reducer(
 *   "max",
 *   { doc: "Keeps the larger number.", value: z.int() },
 *   (current, updates) => Math.max(...updates, ...(current === undefined ? [] : [current])),
 * );
 *
 * assert.equal(max.reduce(3, [1, 7]), 7);
 * ```
 */
export function reducer<V extends Type, U extends Type = V>(
  name: string,
  description: ReducerDescription<V, U>,
  reduce: ReducerFunction<V, U>,
): Reducer<V, U> {
  return new Reducer(name, description, reduce);
}
