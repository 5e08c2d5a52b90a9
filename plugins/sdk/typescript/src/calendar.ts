// Arithmetic of the proleptic Gregorian calendar, and the order of civil times.

import type { Civil } from "./clock.ts";

/** Number of milliseconds of a day without a change of the clock. */
const DAY_MS = 86_400_000;

/**
 * Maximum length of a gap at midnight, in milliseconds: clocks were never advanced by more than a day.
 */
const LONGEST_GAP_MS = 24 * 3_600_000;

/** The fields of a civil time, the greatest unit first. */
const UNITS = ["year", "month", "day", "hour", "minute", "second", "millisecond"] as const;

/** Number of days in 400 Gregorian years. */
const ERA_DAYS = 146_097;

/** Number of days from 0000-03-01, where the years of the algorithm begin, to 1970-01-01. */
const EPOCH_DAYS = 719_468;

/** Number of days in five months from March on. The lengths of the months repeat after these. */
const FIVE_MONTHS = 153;

/** The greatest year of the other SDKs, whose years have 32 bits. */
const LAST_YEAR = 2 ** 31 - 1;

/**
 * Returns the year, month and day for a number of days since 1970-01-01, or `undefined` for a year out
 * of range. The algorithm begins years in March, so that the leap day is the last day of a year.
 */
export function dateOf(
  daysSince1970: number,
): { year: number; month: number; day: number } | undefined {
  const days = daysSince1970 + EPOCH_DAYS;
  const era = Math.floor(days / ERA_DAYS);
  const dayOfEra = days - era * ERA_DAYS;
  const leapDays =
    Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / FIVE_MONTHS);
  const day = dayOfYear - Math.floor((FIVE_MONTHS * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return year >= -LAST_YEAR - 1 && year <= LAST_YEAR ? { year, month, day } : undefined;
}

/** Returns the number of days from 1970-01-01 to a date. */
export function daysTo(date: { year: number; month: number; day: number }): number {
  const { month, day } = date;
  const year = date.year - (month <= 2 ? 1 : 0);
  const shifted = month > 2 ? month - 3 : month + 9;
  const dayOfYear = Math.floor((FIVE_MONTHS * shifted + 2) / 5) + day - 1;
  const era = Math.floor(year / 400);
  const yearOfEra = year - era * 400;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * ERA_DAYS + dayOfEra - EPOCH_DAYS;
}

/** Returns the civil time of an instant in UTC, in milliseconds since 1970. */
export function civilOf(unixMs: number): Civil {
  const days = Math.floor(unixMs / DAY_MS);
  const ms = unixMs - days * DAY_MS;
  return {
    // Instants that a number has exactly reach no year out of range.
    ...(dateOf(days) ?? { year: 0, month: 0, day: 0 }),
    hour: Math.floor(ms / 3_600_000),
    minute: Math.floor(ms / 60_000) % 60,
    second: Math.floor(ms / 1000) % 60,
    millisecond: ms % 1000,
  };
}

/** Returns a negative number if one civil time is before another one, and 0 if they are equal. */
export function compare(one: Civil, other: Civil): number {
  const unit = UNITS.find((it) => one[it] !== other[it]);
  return unit === undefined ? 0 : one[unit] - other[unit];
}

/**
 * Returns the first instant whose civil time is `from` or later. `late` is such an instant, and the
 * instant {@link LONGEST_GAP_MS} before it is none.
 */
export function firstFrom(from: Civil, late: number, civilAt: (unixMs: number) => Civil): number {
  let [before, within] = [late - LONGEST_GAP_MS, late];
  while (within - before > 1) {
    const middle = Math.floor((before + within) / 2);
    if (compare(civilAt(middle), from) < 0) before = middle;
    else within = middle;
  }
  return within;
}
