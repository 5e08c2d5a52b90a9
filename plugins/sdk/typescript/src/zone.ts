// Settings with a time zone. They are outside of `clock`, so that a component with a clock does not import
// the settings.

import { nowIn, type Zoned } from "./clock.ts";
import * as settings from "./settings.ts";

/**
 * A setting of the app with the IANA name of a time zone.
 *
 * ```ts
 * import { clock, ZoneSetting } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const ZONE = new ZoneSetting("time_zone").withDefault("Asia/Shanghai");
 *
 * // 2025-01-15T02:30:45Z, where clocks are eight hours ahead.
 * const host = new FakeHost().nowMs(1_736_908_245_000).zone("Asia/Shanghai", 8 * 3600);
 * const now = host.run(() => ZONE.now());
 * assert.equal(clock.iso(now), "2025-01-15T10:30:45+08:00");
 * ```
 */
export class ZoneSetting {
  readonly #name: string;
  readonly #fallback: string | undefined;

  /**
   * Describes the setting with a name. If it is missing or blank, `fallback` applies, or the operator's
   * time zone without one.
   */
  constructor(name: string, fallback?: string) {
    this.#name = name;
    this.#fallback = fallback;
  }

  /** Sets the time zone that applies if the setting is missing or blank. */
  withDefault(zone: string): ZoneSetting {
    return new ZoneSetting(this.#name, zone);
  }

  /**
   * Returns the time zone; `undefined` is the operator's time zone.
   *
   * @throws `invalid` if the setting is not a text.
   */
  zone(): string | undefined {
    return settings.text(this.#name) ?? this.#fallback;
  }

  /**
   * Returns the current civil time in the time zone.
   *
   * @throws `invalid` if the setting is not a text, or for an unknown time zone.
   */
  now(): Zoned {
    return nowIn(this.zone());
  }
}
