// The book while its months are read.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { Book } from "../src/book.ts";
import { BookPanel } from "../src/book-panel.tsx";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function book(month: string): Book {
  const sums = { consume: 0, income: 0, count: 0, categories: [] };
  const timeZone = "Asia/Shanghai";
  return { month, today: "2025-01-15", timeZone, days: [], sums, bookings: [], truncated: false };
}

test("the previous month is shown until the next one is read, also after a failure", async () => {
  const answers = [
    () => Response.json(book("2025-01")),
    () => Response.json({ error: "没有权限" }, { status: 502 }),
    () => Response.json(book("2024-12")),
  ];
  vi.stubGlobal("fetch", async () => answers.shift()?.());
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <BookPanel onZone={() => {}} />
    </QueryClientProvider>,
  );
  await screen.findByText("2025年1月");
  fireEvent.click(screen.getByRole("button", { name: "上个月" }));
  await screen.findByText("没有权限");
  screen.getByText("2025年1月");
  fireEvent.click(screen.getByRole("button", { name: "重试" }));
  await screen.findByText("2024年12月");
  expect(screen.queryByRole("alert")).toBeNull();
});
