// Amounts, dates and months as people read them.

const YUAN = new Intl.NumberFormat("zh-CN", { style: "currency", currency: "CNY" });

/** An amount in yuan. */
export function yuan(amount: number): string {
  return YUAN.format(amount).replace("-¥", "−¥");
}

/** An instant as clocks in a zone show it: `2025-01-14 00:00:00`. */
export function dateTime(ms: number, zone: string): string {
  const format = new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return format.format(ms);
}

/** The time of a day, if it is not its first instant: a booking of a day has none. */
export function timeOf(ms: number, zone: string): string | undefined {
  const time = dateTime(ms, zone).slice(11, 16);
  return time === "00:00" ? undefined : time;
}

const MONTH = /^(\d{4})-(\d{2})$/;

/** The month some months later, or before: `2025-01` and -1 make `2024-12`. */
export function monthAfter(month: string, months: number): string {
  const [, year, number] = MONTH.exec(month) ?? [];
  const index = Number(year) * 12 + Number(number) - 1 + months;
  return `${String(Math.floor(index / 12)).padStart(4, "0")}-${String((index % 12) + 1).padStart(2, "0")}`;
}

/** `2025年1月`. */
export function monthName(month: string): string {
  const [, year, number] = MONTH.exec(month) ?? [];
  return `${year}年${Number(number)}月`;
}

/** `1月14日 周二`. */
export function dayName(date: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  const weekday = new Intl.DateTimeFormat("zh-CN", { weekday: "short", timeZone: "UTC" });
  return `${day.getUTCMonth() + 1}月${day.getUTCDate()}日 ${weekday.format(day)}`;
}
