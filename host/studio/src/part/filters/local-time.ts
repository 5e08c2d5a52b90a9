// Times of filters: milliseconds since 1970 in addresses, and local times in fields.

/** The last time that a field of a date with four digits of the year can show, in any zone. */
const MAX_MS = Date.UTC(9999, 0);

const MINUTE_MS = 60_000;
const SECOND_MS = 1_000;

/** Length of a local time with minutes, seconds and milliseconds. */
const [MINUTES, SECONDS, MILLISECONDS] = [16, 19, 23];

/** Accepts milliseconds since 1970 that a field can show. */
export function milliseconds(text: string): string | undefined {
  return /^\d{1,15}$/.test(text) && Number(text) <= MAX_MS ? String(Number(text)) : undefined;
}

/** Returns the milliseconds of a local time such as `2025-01-31T10:30`; `undefined` for no time. */
export function toMilliseconds(local: string): string | undefined {
  return milliseconds(String(new Date(local).getTime()));
}

/** Returns the local time of milliseconds, as exact as it has to be. */
export function toLocal(text: string): string {
  const ms = Number(text);
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS).toISOString();
  if (ms % SECOND_MS !== 0) return shifted.slice(0, MILLISECONDS);
  return shifted.slice(0, ms % MINUTE_MS === 0 ? MINUTES : SECONDS);
}
