// The current time.

import * as host from "#host/clock";

/** A date and time without a time zone, in the proleptic Gregorian calendar. */
export interface Civil {
  /** Year; negative before the year 0. */
  year: number;
  /** Month, 1 to 12. */
  month: number;
  /** Day of the month, 1 to 31. */
  day: number;
  /** Hour, 0 to 23. */
  hour: number;
  /** Minute, 0 to 59. */
  minute: number;
  /** Second, 0 to 59. */
  second: number;
  /** Millisecond, 0 to 999. */
  millisecond: number;
}

/** A civil time in a time zone. */
export interface Zoned {
  /** Local date and time. */
  civil: Civil;
  /** Offset from UTC in seconds, positive to the east. */
  offsetSeconds: number;
  /** Day of the week, 1 for Monday to 7 for Sunday. */
  weekday: number;
  /** IANA name of the time zone. */
  zone: string;
}

/** Creates the civil time of midnight at the beginning of a date. */
export function midnight(year: number, month: number, day: number): Civil {
  return { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 };
}

/** Formats the date of a civil time, such as `2026-03-01`. */
export function date({ year, month, day }: Civil): string {
  const digits = (number: number, length: number) => String(number).padStart(length, "0");
  // The four characters of a negative year have its sign, as in the other SDKs.
  const years = year < 0 ? `-${digits(-year, 3)}` : digits(year, 4);
  return `${years}-${digits(month, 2)}-${digits(day, 2)}`;
}

/**
 * Returns the time in milliseconds since 1970-01-01T00:00:00Z. It is journaled, like all times of this
 * module, so a node that is executed again gets the same time.
 *
 * ```ts
 * import { clock } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * // 2026-03-01T22:30:00Z, where clocks are eight hours ahead.
 * const host = new FakeHost().nowMs(1_772_404_200_000).zone("Asia/Shanghai", 8 * 3600);
 * host.run(() => {
 *   assert.equal(clock.timeZone(), "Asia/Shanghai");
 *   const today = clock.toZone(clock.nowMs());
 *   assert.equal(clock.date(today.civil), "2026-03-02");
 *   assert.equal(clock.fromZone(today.civil), clock.nowMs());
 * });
 * ```
 */
export function nowMs(): number {
  return host.now();
}

/**
 * Returns a monotonic time in nanoseconds, for measuring durations. It is exact to a nanosecond for
 * the first 104 days of the host's clock.
 */
export function monotonicNs(): number {
  return host.monotonic();
}

/** Returns the IANA name of the operator's time zone, such as `Asia/Shanghai`. */
export function timeZone(): string {
  return host.timeZone();
}

/**
 * Converts an instant, in milliseconds since 1970, to the civil time in a time zone. Without a zone it
 * is the operator's.
 */
export function toZone(unixMs: number, zone?: string): Zoned {
  return host.toZone(unixMs, zone);
}

/**
 * Converts a civil time in a time zone to an instant, in milliseconds since 1970. Without a zone it is
 * the operator's. A time in a gap becomes the later instant, a time in a fold the earlier one.
 */
export function fromZone(civil: Civil, zone?: string): number {
  return host.fromZone(civil, zone);
}
