// Amounts as short texts: counts, costs, bytes and durations.

const COUNT = new Intl.NumberFormat("en-US");

/** Costs are in the currency of the prices, which has no name. */
const SMALL_COST = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const COST = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB"] as const;

/** Bytes of a unit in the next smaller one. */
const BYTES_STEP = 1024;

const MS_US = 1_000;
const SECOND_US = 1_000_000;
const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Returns a count with its thousands apart. */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** Returns a cost with about three digits. */
export function costText(cost: number): string {
  return (cost < 1 ? SMALL_COST : COST).format(cost);
}

/** Returns a number of bytes in the largest unit of which there is one. */
export function bytesText(bytes: number): string {
  let amount = bytes;
  let shown = String(bytes);
  let unit = 0;
  // An amount that is rounded up to the next unit is shown in that unit.
  while (Number(shown) >= BYTES_STEP && unit < BYTE_UNITS.length - 1) {
    amount /= BYTES_STEP;
    shown = amount.toFixed(1);
    unit += 1;
  }
  return `${shown} ${BYTE_UNITS[unit]}`;
}

/** Returns a positive number up to 1,000 with about three digits, also if it is rounded up. */
function short(amount: number): string {
  const two = amount.toFixed(2);
  if (Number(two) < 10) return two;
  const one = amount.toFixed(1);
  return Number(one) < 100 ? one : amount.toFixed(0);
}

/** Returns the time between a start and an end; `undefined` unless both are known. */
export function tookText(
  startMs: number | null | undefined,
  endMs: number | null | undefined,
): string | undefined {
  if (startMs == null || endMs == null) return undefined;
  return durationText((endMs - startMs) * MS_US);
}

/** Returns a duration of whole milliseconds. */
export function msText(ms: number): string {
  return durationText(ms * MS_US);
}

/** Returns a duration with about three digits. */
export function durationText(us: number): string {
  // The clocks of two hosts can differ.
  if (us < 0) return `-${durationText(-us)}`;
  if (us < MS_US) return `${us} µs`;
  const ms = short(us / MS_US);
  if (Number(ms) < SECOND_MS) return `${ms} ms`;
  const seconds = short(us / SECOND_US);
  if (Number(seconds) < MINUTE_S) return `${seconds} s`;
  const whole = Math.round(us / SECOND_US);
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)} min ${whole % MINUTE_S} s`;
  return `${Math.floor(whole / HOUR_S)} h ${Math.floor((whole % HOUR_S) / MINUTE_S)} min`;
}
