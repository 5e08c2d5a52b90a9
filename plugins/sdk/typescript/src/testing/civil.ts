// Calendar arithmetic for zones with a fixed offset.

import type { Civil, Zoned } from "../clock.ts";

/** Converts an instant to the civil time of a zone. */
export function toZone(unixMs: number, zone: string, offsetSeconds: number): Zoned {
  const local = new Date(unixMs + offsetSeconds * 1000);
  const civil = {
    year: local.getUTCFullYear(),
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    millisecond: local.getUTCMilliseconds(),
  };
  return { civil, offsetSeconds, weekday: local.getUTCDay() || 7, zone };
}

/** Converts a civil time to an instant, in milliseconds since 1970. */
export function fromZone(civil: Civil, offsetSeconds: number): number {
  const date = new Date(0);
  // Unlike `Date.UTC`, this takes years below 100 as they are.
  date.setUTCFullYear(civil.year, civil.month - 1, civil.day);
  date.setUTCHours(civil.hour, civil.minute, civil.second, civil.millisecond);
  return date.getTime() - offsetSeconds * 1000;
}
