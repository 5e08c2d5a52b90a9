// The bookings of a month: documents, requests and sums.
import { useQuery } from "@tanstack/react-query";
import { useTabs } from "@wattle/page";
import { useCallback, useState } from "react";
import type { Booking, Category, MonthDocument, Sums } from "./schema.d.ts";
import { CHANNEL, call } from "./thread.ts";

/** Time zone until the app has responded. */
const DEFAULT_ZONE = "Asia/Shanghai";

/** Reads a month, by default the current one. The previous month stays until the new one is read. */
export function useBook() {
  const [month, setMonth] = useState<string>();
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ["book", month],
    queryFn: ({ signal }) => call("get", "/api/bookings", { query: { month }, signal }),
  });
  const [book, setBook] = useState<MonthDocument>();
  if (data !== undefined && data !== book) setBook(data);
  const read = useCallback(() => void refetch(), [refetch]);
  useTabs(CHANNEL, read);
  const zone = book?.timeZone ?? DEFAULT_ZONE;
  return { book, zone, error, isReading: isFetching, read, setMonth };
}

/** Rounds an amount to hundredths, so that sums are exact. */
export function exact(yuan: number): number {
  return Math.round(yuan * 100) / 100;
}

/** Returns the sums of a day, by the same rules as those of a month. */
export function sumsOf(bookings: readonly Booking[]): Sums {
  const sums = { consume: 0, income: 0 };
  const categories = new Map<string, Category>();
  for (const { kind, category, amount } of bookings) {
    const yuan = exact(amount ?? 0);
    sums[kind] = exact(sums[kind] + yuan);
    const key = `${kind} ${category}`;
    const sum = categories.get(key) ?? { category, kind, amount: 0, count: 0 };
    categories.set(key, { ...sum, amount: exact(sum.amount + yuan), count: sum.count + 1 });
  }
  const largestFirst = [...categories.values()].sort((one, other) => other.amount - one.amount);
  return { ...sums, count: bookings.length, categories: largestFirst };
}
