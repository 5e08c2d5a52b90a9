// The bookings of a month: documents, requests and sums.
import { ApiError, request } from "@wattle/page";

export type Kind = "consume" | "income";

export interface Booking {
  id: string;
  date: string;
  dateMs: number;
  remark: string;
  category: string;
  /** Amount in yuan, or `null` if the cell of the table is empty. */
  amount: number | null;
  kind: Kind;
}

export interface Category {
  category: string;
  kind: Kind;
  amount: number;
  count: number;
}

export interface Day {
  date: string;
  consume: number;
  income: number;
  count: number;
}

export interface Sums {
  consume: number;
  income: number;
  count: number;
  categories: Category[];
}

/** Response of `GET /api/bookings`. */
export interface Book {
  month: string;
  today: string;
  timeZone: string;
  days: Day[];
  sums: Sums;
  bookings: Booking[];
  truncated: boolean;
}

/** Beginning of the keys of queries for months. */
export const BOOK = "book";

/** Time zone until the app has responded. */
export const DEFAULT_ZONE = "Asia/Shanghai";

/** Reads a month, by default the current one. */
export function readBook(month: string | undefined, signal: AbortSignal): Promise<Book> {
  const query = month === undefined ? "" : `?month=${month}`;
  return request<Book>(`api/bookings${query}`, { signal });
}

/** Returns the message for a month that could not be read. */
export function whyUnread(error: unknown): string {
  return error instanceof ApiError ? error.message : "账目暂时无法读取，请稍后再试";
}

/** Adds amounts in hundredths, so that the sum is exact. */
function add(amounts: readonly (number | null)[]): number {
  return amounts.reduce<number>((sum, amount) => sum + Math.round((amount ?? 0) * 100), 0) / 100;
}

/** Returns the sums of a day, by the same rules as those of a month. */
export function sumsOf(bookings: readonly Booking[]): Sums {
  const of = (kind: Kind) => bookings.filter((booking) => booking.kind === kind);
  const categories = (["consume", "income"] as const).flatMap((kind) => {
    const names = [...new Set(of(kind).map(({ category }) => category))];
    return names.map((category) => {
      const rows = of(kind).filter((booking) => booking.category === category);
      return { category, kind, amount: add(rows.map((row) => row.amount)), count: rows.length };
    });
  });
  return {
    consume: add(of("consume").map((row) => row.amount)),
    income: add(of("income").map((row) => row.amount)),
    count: bookings.length,
    categories: categories.sort((one, other) => other.amount - one.amount),
  };
}

/** Groups bookings by day, the newest day first. */
export function byDay(bookings: readonly Booking[]): [string, Booking[]][] {
  const days = new Map<string, Booking[]>();
  for (const booking of bookings) {
    const day = days.get(booking.date);
    if (day) day.push(booking);
    else days.set(booking.date, [booking]);
  }
  return [...days].sort(([one], [other]) => (one < other ? 1 : -1));
}
