// The current time, and dates in a time zone.

import * as host from "#host/clock";
import { civilOf, compare, dateOf, daysTo, firstFrom } from "./calendar.ts";

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

/**
 * Creates the civil time of midnight at the beginning of a date, or returns `undefined` if the date does
 * not exist.
 *
 * ```ts
 * import { clock } from "wattle-plugin";
 *
 * assert.deepEqual(clock.checkedDate(2024, 2, 29), clock.midnight(2024, 2, 29));
 * assert.equal(clock.checkedDate(2025, 2, 29), undefined);
 * ```
 */
export function checkedDate(year: number, month: number, day: number): Civil | undefined {
  const last = daysInMonth(year, month);
  return last !== undefined && day >= 1 && day <= last ? midnight(year, month, day) : undefined;
}

/** Returns the number of days of a month, or `undefined` for a month out of range. */
export function daysInMonth(year: number, month: number): number | undefined {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  if ([4, 6, 9, 11].includes(month)) return 30;
  return [1, 3, 5, 7, 8, 10, 12].includes(month) ? 31 : undefined;
}

/**
 * Returns the same time of the day a number of days later, or earlier if negative. Returns `undefined`
 * for a year out of range.
 *
 * ```ts
 * import { clock } from "wattle-plugin";
 *
 * const yesterday = clock.plusDays(clock.midnight(2024, 3, 1), -1);
 * assert.deepEqual(yesterday, clock.midnight(2024, 2, 29));
 * ```
 */
export function plusDays(civil: Civil, days: number): Civil | undefined {
  const date = dateOf(daysTo(civil) + days);
  return date && { ...civil, ...date };
}

/** Formats the date of a civil time, such as `2026-03-01`. */
export function date({ year, month, day }: Civil): string {
  return `${yearText(year)}-${padded(month)}-${padded(day)}`;
}

/** Formats the time of the day of a civil time, such as `10:30:45`. */
export function time({ hour, minute, second }: Civil): string {
  return `${padded(hour)}:${padded(minute)}:${padded(second)}`;
}

/** Formats date and time as digits for names of files, such as `20260301103045`. */
export function digits({ year, ...civil }: Civil): string {
  const { month, day, hour, minute, second } = civil;
  return yearText(year) + [month, day, hour, minute, second].map((part) => padded(part)).join("");
}

/** Formats a time with its offset from UTC, such as `2025-01-15T10:30:45+08:00`. */
export function iso({ civil, offsetSeconds }: Zoned): string {
  const minutes = Math.floor(Math.abs(offsetSeconds) / 60);
  const offset = `${padded(Math.floor(minutes / 60))}:${padded(minutes % 60)}`;
  return `${date(civil)}T${time(civil)}${offsetSeconds < 0 ? "-" : "+"}${offset}`;
}

/**
 * Formats an instant, in milliseconds since 1970, as `2025-01-15T02:30:45.007Z`. Such texts sort by
 * time. The calculation calls no function of the host.
 */
export function utc(unixMs: number): string {
  const civil = civilOf(unixMs);
  return `${date(civil)}T${time(civil)}.${padded(civil.millisecond, 3)}Z`;
}

/**
 * Formats an instant, in milliseconds since 1970, to the second: `2025-01-15T02:30:45Z`. The
 * calculation calls no function of the host.
 */
export function utcSeconds(unixMs: number): string {
  const civil = civilOf(unixMs);
  return `${date(civil)}T${time(civil)}Z`;
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
 * Returns the current civil time in a time zone. Without a zone it is the operator's. A
 * {@link ZoneSetting} has the zone of a setting of the app.
 *
 * @throws `invalid` for an unknown time zone.
 */
export function nowIn(zone?: string): Zoned {
  return toZone(nowMs(), zone);
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

/**
 * Returns the first instant of a day in a time zone, in milliseconds since 1970: midnight, or the end of
 * the gap if clocks are advanced at midnight. Without a zone it is the operator's. The time of the day
 * of `day` is ignored.
 *
 * @throws `invalid` for an unknown time zone or a date that does not exist.
 */
export function firstInstant(day: Civil, zone?: string): number {
  const start = midnight(day.year, day.month, day.day);
  // In a gap the host returns an instant after the gap, which may be later than its end.
  const late = fromZone(start, zone);
  if (compare(toZone(late, zone).civil, start) === 0) return late;
  return firstFrom(start, late, (unixMs) => toZone(unixMs, zone).civil);
}

/** Formats a year. The four characters of a negative year have its sign, as in the other SDKs. */
function yearText(year: number): string {
  return year < 0 ? `-${padded(-year, 3)}` : padded(year, 4);
}

function padded(number: number, length = 2): string {
  return String(number).padStart(length, "0");
}
