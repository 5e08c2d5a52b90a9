// The list of a portfolio, in whatever order the answers arrive.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Operation } from "../src/api.ts";
import { OperationList } from "../src/list/stored-list.tsx";

interface Asked {
  search: string;
  answer: (response: Response) => void;
}

let asked: Asked[] = [];

beforeEach(() => {
  asked = [];
  vi.stubGlobal(
    "fetch",
    (url: string) =>
      new Promise<Response>((answer) => asked.push({ search: new URL(url).search, answer })),
  );
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function row(id: number, portfolioId: number): Operation {
  return {
    id,
    portfolioId,
    ticker: "0700.HK",
    name: "腾讯",
    action: "buy",
    quantity: 100,
    price: 320,
    currency: "HKD",
    riskCategory: "moderate",
    tradedAt: "2025-01-14",
    createdAt: "2025-01-15T10:30:45Z",
    memo: null,
  };
}

/** Answers the first open request with the query by some rows, and shows what comes of it. */
async function answer(search: string, rows: Operation[], nextBefore: number | null = null) {
  const index = asked.findIndex((request) => request.search === search);
  const [request] = asked.splice(index, index < 0 ? 0 : 1);
  if (request === undefined) throw new Error(`no open request ${search}`);
  const text = async () => JSON.stringify({ items: rows, nextBefore });
  await act(async () => request.answer({ ok: true, status: 200, text } as Response));
}

function list(portfolioId: number) {
  return <OperationList portfolioId={portfolioId} portfolios={[]} version={0} />;
}

/** Number of rows in the list. A window without a height renders none of them. */
function count(): number {
  return Number(screen.getByRole("table").getAttribute("aria-rowcount")) - 1;
}

const FIRST = [row(9, 1), row(8, 1), row(7, 1)];

const SECOND = [row(6, 2), row(5, 2)];

it("drops a late answer about the portfolio that was chosen before", async () => {
  const { rerender } = render(list(1));
  rerender(list(2));
  await answer("?portfolioId=2", SECOND);
  await answer("?portfolioId=1", FIRST);
  expect(count()).toBe(2);
});

it("shows no rows of the portfolio that was chosen before", async () => {
  const { rerender } = render(list(1));
  rerender(list(2));
  await answer("?portfolioId=1", FIRST);
  expect(screen.queryByRole("table")).toBeNull();
  await answer("?portfolioId=2", SECOND);
  expect(count()).toBe(2);
});

it("adds older rows only to the list that they continue", async () => {
  const { rerender } = render(list(1));
  await answer("?portfolioId=1", FIRST, 7);
  fireEvent.click(screen.getByText("更早的记录"));
  rerender(list(2));
  await answer("?portfolioId=2", SECOND);
  await answer("?portfolioId=1&before=7", [row(4, 1)], 4);
  expect(count()).toBe(2);
  expect(screen.queryByText("更早的记录")).toBeNull();
});

it("adds older rows once after two clicks", async () => {
  render(list(1));
  await answer("?portfolioId=1", FIRST, 7);
  fireEvent.click(screen.getByText("更早的记录"));
  fireEvent.click(screen.getByText("更早的记录"));
  await answer("?portfolioId=1&before=7", [row(4, 1)], 4);
  await answer("?portfolioId=1&before=7", [row(4, 1)], 4);
  expect(count()).toBe(4);
});
