// The book: the bookings of a day or a month, with sums and a chart by category.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, Button, later, Segments, useTabs } from "@wattle/page";
import { Suspense, useEffect, useState } from "react";
import {
  BOOK,
  type Book,
  type Booking,
  byDay,
  DEFAULT_ZONE,
  readBook,
  type Sums,
  sumsOf,
  whyUnread,
} from "./book.ts";
import { dayName, monthAfter, monthName, timeOf, yuan } from "./format.ts";
import { CHANNEL } from "./thread.ts";

const Categories = later(() => import("./categories.tsx"));

type Scope = "day" | "month";

interface BookPanelProps {
  /** Called with the time zone of the book. */
  onZone: (zone: string) => void;
}

export function BookPanel({ onZone }: BookPanelProps) {
  const [month, setMonth] = useState<string>();
  const { book, error, isReading, read } = useBook(month);
  const [scope, setScope] = useState<Scope>("month");
  const [day, setDay] = useState<string>();
  const zone = book?.timeZone ?? DEFAULT_ZONE;
  useEffect(() => onZone(zone), [zone, onZone]);
  const days = book?.days.map(({ date }) => date) ?? [];
  const chosen = book && (day?.startsWith(book.month) ? day : dayOf(book));
  const shown = book?.bookings.filter((row) => scope === "month" || row.date === chosen) ?? [];
  const sums = book && (scope === "month" ? book.sums : sumsOf(shown));
  return (
    <section className="e-book" aria-label="账本" aria-busy={isReading}>
      <header>
        <h2>账本</h2>
        <Segments
          label="范围"
          value={scope}
          onChange={setScope}
          options={[
            { value: "day", name: "当天" },
            { value: "month", name: "当月" },
          ]}
        />
      </header>
      {book && (
        <MonthBar month={book.month} today={book.today} onMonth={setMonth} isReading={isReading} />
      )}
      {book && scope === "day" && chosen && (
        <DayBar day={chosen} days={days} today={book.today} onDay={setDay} />
      )}
      {error !== undefined && <Alert actions={<Button onClick={read}>重试</Button>}>{error}</Alert>}
      {!book && error === undefined && <p role="status">正在读取账目…</p>}
      {sums && <SumTiles sums={sums} />}
      {sums && sums.categories.length > 0 && (
        <Suspense fallback={<p role="status">正在画图…</p>}>
          <Categories categories={sums.categories} />
        </Suspense>
      )}
      {book && <Bookings rows={shown} zone={zone} />}
      {book?.truncated && (
        <p className="w-note">本月记录过多，只统计了最近的 {book.sums.count} 笔。</p>
      )}
    </section>
  );
}

/**
 * Returns the current date if it is in the month, otherwise the last day with bookings, otherwise
 * the first day.
 */
function dayOf(book: Book): string {
  if (book.today.startsWith(book.month)) return book.today;
  return book.days.at(-1)?.date ?? `${book.month}-01`;
}

/** Reads a month. The previous book stays visible until the new one is read. */
function useBook(month: string | undefined) {
  const client = useQueryClient();
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: [BOOK, month ?? "current"],
    queryFn: ({ signal }) => readBook(month, signal),
  });
  const [book, setBook] = useState<Book>();
  if (data !== undefined && data !== book) setBook(data);
  useTabs(CHANNEL, (thread) => {
    // A user who returns to this tab reads the book in any case.
    if (thread !== undefined) void client.invalidateQueries({ queryKey: [BOOK] });
  });
  const why = error === null ? undefined : whyUnread(error);
  return { book, error: why, isReading: isFetching, read: () => void refetch() };
}

interface MonthBarProps {
  month: string;
  today: string;
  isReading: boolean;
  onMonth: (month: string) => void;
}

function MonthBar({ month, today, isReading, onMonth }: MonthBarProps) {
  const current = today.slice(0, 7);
  return (
    <div className="e-bar">
      <Button aria-label="上个月" busy={isReading} onClick={() => onMonth(monthAfter(month, -1))}>
        ‹
      </Button>
      <h3 aria-live="polite">{monthName(month)}</h3>
      <Button aria-label="下个月" busy={isReading} onClick={() => onMonth(monthAfter(month, 1))}>
        ›
      </Button>
      {month !== current && <Button onClick={() => onMonth(current)}>本月</Button>}
    </div>
  );
}

interface DayBarProps {
  day: string;
  days: readonly string[];
  today: string;
  onDay: (day: string) => void;
}

function DayBar({ day, days, today, onDay }: DayBarProps) {
  const options = [...new Set([...days, day])].sort().reverse();
  return (
    <label className="e-bar">
      <span>日期</span>
      <select className="w-input" value={day} onChange={(event) => onDay(event.target.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {dayName(option)}
            {option === today ? "（今天）" : ""}
          </option>
        ))}
      </select>
    </label>
  );
}

function SumTiles({ sums }: { sums: Sums }) {
  const tiles = [
    ["支出", yuan(sums.consume)],
    ["收入", yuan(sums.income)],
    ["结余", yuan(Math.round((sums.income - sums.consume) * 100) / 100)],
    ["笔数", String(sums.count)],
  ] as const;
  return (
    <dl className="e-sums">
      {tiles.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Bookings({ rows, zone }: { rows: readonly Booking[]; zone: string }) {
  if (rows.length === 0) return <p className="e-empty">还没有记录。</p>;
  return (
    <div className="e-days">
      {byDay(rows).map(([date, bookings]) => (
        <section key={date} aria-label={dayName(date)}>
          <h4>{dayName(date)}</h4>
          <ul>
            {bookings.map((booking) => (
              <li key={booking.id}>
                <span className="e-remark">{booking.remark || "（无备注）"}</span>
                <span className="e-category">
                  {[booking.category, timeOf(booking.dateMs, zone)].filter(Boolean).join(" · ")}
                </span>
                <span className="e-amount" data-kind={booking.kind}>
                  {amount(booking)}
                </span>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function amount({ amount, kind }: Booking): string {
  if (amount === null) return "—";
  return `${kind === "income" ? "+" : "−"}${yuan(amount)}`;
}
