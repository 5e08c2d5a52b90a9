// The book next to the conversation.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { useBook } from "../src/book.ts";
import { BookPanel } from "../src/book-panel.tsx";
import type { Booking, MonthDocument } from "../src/schema.d.ts";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function book(month: string, bookings: Booking[] = []): MonthDocument {
  const sums = { consume: 0, income: 0, count: bookings.length, categories: [] };
  const dates = [...new Set(bookings.map(({ date }) => date))].sort();
  const days = dates.map((date) => ({ date, consume: 0, income: 0, count: 0 }));
  const timeZone = "Asia/Shanghai";
  return { month, today: "2025-01-15", timeZone, days, sums, bookings, truncated: false };
}

function Panel() {
  return <BookPanel {...useBook()} />;
}

/** Shows the book, whose months are read in this order. */
function show(...answers: Response[]): void {
  vi.stubGlobal("fetch", async () => answers.shift());
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <Panel />
    </QueryClientProvider>,
  );
}

test("the previous month is shown until the next one is read, also after a failure", async () => {
  show(
    Response.json(book("2025-01")),
    Response.json({ error: "没有权限" }, { status: 502 }),
    Response.json(book("2024-12")),
  );
  await screen.findByText("2025年1月");
  fireEvent.click(screen.getByRole("button", { name: "上个月" }));
  await screen.findByText("没有权限");
  screen.getByText("2025年1月");
  fireEvent.click(screen.getByRole("button", { name: "重试" }));
  await screen.findByText("2024年12月");
  expect(screen.queryByRole("alert")).toBeNull();
});

test("bookings are listed by day in the order of the rows, and a day can be chosen", async () => {
  const row = (id: string, date: string): Booking => {
    const kind = "consume" as const;
    return { id, date, dateMs: 0, remark: id, category: "餐饮", amount: 1, kind };
  };
  const rows = [row("a", "2025-01-15"), row("b", "2025-01-15"), row("c", "2025-01-13")];
  show(Response.json(book("2025-01", rows)));
  const days = await screen.findAllByRole("region", { name: /^1月/ });
  const texts = (day: HTMLElement) =>
    within(day)
      .getAllByRole("listitem")
      .map(({ textContent }) => textContent?.slice(0, 1));
  expect(days.map(texts)).toEqual([["a", "b"], ["c"]]);
  fireEvent.click(screen.getByRole("radio", { name: "当天" }));
  const dates = screen.getByRole("combobox", { name: "日期" });
  const options = within(dates).getAllByRole<HTMLOptionElement>("option");
  expect(options.map(({ value }) => value)).toEqual(["2025-01-15", "2025-01-13"]);
  fireEvent.change(dates, { target: { value: "2025-01-13" } });
  expect(screen.getByRole("region", { name: /^1月13日/ }).textContent).toContain("c餐饮");
  expect(screen.queryByRole("region", { name: /^1月15日/ })).toBeNull();
});
