// The app's non-secret settings, from `app.toml` and the operator's configuration.

import type { output } from "zod/v4/core";
import * as host from "#host/settings";
import { Failure } from "./failure.ts";
import { type Extra, type Json, parse, read, type Type } from "./json.ts";
import { trimmed } from "./whitespace.ts";

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
 * Returns a text setting without surrounding whitespace, or `undefined` if it is missing or blank. An
 * operator replaces a setting of `app.toml` by a blank text to unset it.
 *
 * ```ts
 * import { settings } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().setting("base_url", " https://a.example").setting("language", "");
 * host.run(() => {
 *   assert.equal(settings.text("base_url"), "https://a.example");
 *   assert.equal(settings.text("language"), undefined);
 *   assert.equal(settings.text("missing"), undefined);
 * });
 * ```
 *
 * @throws `invalid` if the setting is not a text.
 */
export function text(name: string): string | undefined {
  const setting = get(name);
  if (setting === undefined) return undefined;
  if (typeof setting === "string") return trimmed(setting) || undefined;
  throw Failure.invalid(`setting \`${name}\` is invalid: expected a text`, {
    details: { path: "." },
  });
}

/**
 * Returns a text setting as {@link text} does, or a default if it is missing or blank.
 *
 * ```ts
 * import { settings } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().setting("language", " zh ").setting("zone", " ");
 * host.run(() => {
 *   assert.equal(settings.textOr("language", "en"), "zh");
 *   assert.equal(settings.textOr("zone", "UTC"), "UTC");
 * });
 * ```
 *
 * @throws `invalid` if the setting is not a text.
 */
export function textOr(name: string, fallback: string): string {
  return text(name) ?? fallback;
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
