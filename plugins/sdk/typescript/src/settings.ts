// The app's non-secret settings, from `app.toml` and the operator's configuration.

import type { output } from "zod/v4/core";
import * as host from "#host/settings";
import { Failure } from "./failure.ts";
import { type Extra, type Json, parse, read, type Type } from "./json.ts";

/** Returns a setting, or `undefined` if it is not set. */
export function get(name: string): Json | undefined;
/**
 * Returns a setting as a type, or `undefined` if it is not set.
 *
 * ```ts
 * import { settings } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const host = new FakeHost().setting("zone", "Asia/Shanghai").setting("rows", 50);
 * host.run(() => {
 *   assert.equal(settings.require("zone", z.string()), "Asia/Shanghai");
 *   assert.equal(settings.get("limit", z.int()), undefined);
 *   assert.equal(settings.all().rows, 50);
 * });
 * ```
 *
 * @throws `invalid` if the setting does not fit the type.
 */
export function get<T extends Type>(name: string, type: T): output<T> | undefined;
export function get(name: string, type?: Type): unknown {
  const text = host.get(name);
  if (text === undefined) return undefined;
  const what = `setting \`${name}\``;
  return type === undefined ? parse(what, text) : read(what, text, type);
}

/**
 * Returns a required setting as a type.
 *
 * @throws `not-found` if the setting is not set, `invalid` if it does not fit the type.
 */
export function require<T extends Type>(name: string, type: T): output<T> {
  const setting = get(name, type);
  if (setting !== undefined) return setting;
  throw Failure.notFound(`setting \`${name}\` is not set; add it to \`[settings]\``);
}

/** Returns all settings. */
export function all(): Extra;
/**
 * Returns all settings as one type.
 *
 * @throws `invalid` if the settings do not fit the type.
 */
export function all<T extends Type>(type: T): output<T>;
export function all(type?: Type): unknown {
  const text = host.all();
  return type === undefined ? parse("the settings", text) : read("the settings", text, type);
}
