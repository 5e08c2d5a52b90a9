// Formats of amounts, dates and months.

const YUAN = new Intl.NumberFormat("zh-CN", { style: "currency", currency: "CNY" });

/** Formats an amount in yuan. */
export function yuan(amount: number): string {
  return YUAN.format(amount).replace("-¥", "−¥");
}

/** Formats an instant in a time zone: `2025-01-14 00:00:00`. */
export function dateTime(ms: number, zone: string): string {
  const format = new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return format.format(ms);
}

/**
 * Returns the time of day, or `undefined` at midnight: a booking without a time has the first
 * instant of its day.
 */
export function timeOf(ms: number, zone: string): string | undefined {
  const time = dateTime(ms, zone).slice(11, 16);
  return time === "00:00" ? undefined : time;
}

/** Returns the month a number of months later or earlier: `2025-01` and -1 give `2024-12`. */
export function monthAfter(month: string, months: number): string {
  const date = new Date(`${month}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + months);
  return date.toISOString().slice(0, 7);
}

/** Formats a month: `2025年1月`. */
export function monthName(month: string): string {
  const [year, number] = month.split("-");
  return `${year}年${Number(number)}月`;
}

/** Formats a date: `1月14日 周二`. */
export function dayName(date: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  const weekday = new Intl.DateTimeFormat("zh-CN", { weekday: "short", timeZone: "UTC" });
  return `${day.getUTCMonth() + 1}月${day.getUTCDate()}日 ${weekday.format(day)}`;
}
