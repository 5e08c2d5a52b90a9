// The book: the bookings of a day or a month, with sums and a chart by category.
import { Alert, Button, Segments, SelectField } from "@wattle/page";
import { useState } from "react";
import { exact, sumsOf, type useBook } from "./book.ts";
import { Categories } from "./categories.tsx";
import { dayName, monthAfter, monthName, timeOf, yuan } from "./format.ts";
import styles from "./page.module.css";
import type { Booking, MonthDocument, Sums } from "./schema.d.ts";

export function BookPanel(props: ReturnType<typeof useBook>) {
  const { book, zone, error, isReading, read, setMonth } = props;
  const [scope, setScope] = useState<"day" | "month">("month");
  const [day, setDay] = useState<string>();
  const chosen = book && (day?.startsWith(book.month) ? day : dayOf(book));
  const shown = book?.bookings.filter((row) => scope === "month" || row.date === chosen) ?? [];
  const sums = book && (scope === "month" ? book.sums : sumsOf(shown));
  return (
    <section className={styles.book} aria-label="账本" aria-busy={isReading}>
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
      {book && <MonthBar book={book} isReading={isReading} onMonth={setMonth} />}
      {book && scope === "day" && chosen && (
        <SelectField
          label="日期"
          value={chosen}
          onChange={setDay}
          options={dayOptions(book, chosen)}
        />
      )}
      {error && <Alert actions={<Button onClick={read}>重试</Button>}>{error.message}</Alert>}
      {!book && !error && <p role="status">正在读取账目…</p>}
      {sums && <SumTiles sums={sums} />}
      {sums && <Categories categories={sums.categories} />}
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
function dayOf(book: MonthDocument): string {
  if (book.today.startsWith(book.month)) return book.today;
  return book.days.at(-1)?.date ?? `${book.month}-01`;
}

/** Returns the days with bookings and the chosen one, the newest first. */
function dayOptions({ days, today }: MonthDocument, chosen: string) {
  const dates = [...new Set([...days.map(({ date }) => date), chosen])].sort().reverse();
  const name = (date: string) => dayName(date) + (date === today ? "（今天）" : "");
  return dates.map((date) => ({ value: date, name: name(date) }));
}

interface MonthBarProps {
  book: MonthDocument;
  isReading: boolean;
  onMonth: (month: string) => void;
}

function MonthBar({ book: { month, today }, isReading, onMonth }: MonthBarProps) {
  const current = today.slice(0, 7);
  return (
    <div className={styles.bar}>
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

function SumTiles({ sums }: { sums: Sums }) {
  const tiles = [
    ["支出", yuan(sums.consume)],
    ["收入", yuan(sums.income)],
    ["结余", yuan(exact(sums.income - sums.consume))],
    ["笔数", String(sums.count)],
  ] as const;
  return (
    <dl className={styles.sums}>
      {tiles.map(([name, value]) => (
        <div key={name} data-sum={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Bookings by day, in their order: the newest first. */
function Bookings({ rows, zone }: { rows: readonly Booking[]; zone: string }) {
  if (rows.length === 0) return <p className={styles.empty}>还没有记录。</p>;
  const dates = [...new Set(rows.map(({ date }) => date))];
  return (
    <div className={styles.days}>
      {dates.map((date) => (
        <section key={date} aria-label={dayName(date)}>
          <h4>{dayName(date)}</h4>
          <ul>
            {rows
              .filter((booking) => booking.date === date)
              .map((booking) => (
                <li key={booking.id}>
                  <span data-part="remark">{booking.remark || "（无备注）"}</span>
                  <span className={styles.category}>
                    {[booking.category, timeOf(booking.dateMs, zone)].filter(Boolean).join(" · ")}
                  </span>
                  <span className={styles.amount} data-kind={booking.kind}>
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
