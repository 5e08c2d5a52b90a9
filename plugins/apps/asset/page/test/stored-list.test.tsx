// The list of a portfolio, in whatever order the answers arrive.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Operation } from "../src/api.ts";
import { OperationList } from "../src/list/stored-list.tsx";

interface Asked {
  search: string;
  answer: (response: Response) => void;
}

let asked: Asked[];
let client: QueryClient;

beforeEach(() => {
  asked = [];
  client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
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

/** Answers the first open request with the query, and waits until `open` reads are left. */
async function respond(search: string, response: Response, open: number) {
  const request = await waitFor(() => {
    const found = asked.find((it) => it.search === search);
    if (found === undefined) throw new Error(`no open request ${search}`);
    return found;
  });
  asked.splice(asked.indexOf(request), 1);
  request.answer(response);
  await waitFor(() => expect(client.isFetching()).toBe(open));
}

function page(items: Operation[], nextBefore: number | null = null): Response {
  return Response.json({ items, nextBefore });
}

function list(portfolioId: number) {
  return (
    <QueryClientProvider client={client}>
      <OperationList portfolioId={portfolioId} portfolios={[]} />
    </QueryClientProvider>
  );
}

/** Waits for a list of so many rows. A window without a height renders none of them. */
async function comesTo(count: number) {
  await waitFor(() =>
    expect(screen.getByRole("table").getAttribute("aria-rowcount")).toBe(String(count + 1)),
  );
}

const FIRST = [row(9, 1), row(8, 1), row(7, 1)];

const SECOND = [row(6, 2), row(5, 2)];

it("shows no rows of the portfolio that was chosen before", async () => {
  const { rerender } = render(list(1));
  rerender(list(2));
  await respond("?portfolioId=1", page(FIRST), 1);
  screen.getByText("正在读取…");
  await respond("?portfolioId=2", page(SECOND), 0);
  await comesTo(2);
});

it("keeps its rows when an answer about the portfolio that was chosen before is late", async () => {
  const { rerender } = render(list(1));
  rerender(list(2));
  await respond("?portfolioId=2", page(SECOND), 1);
  await comesTo(2);
  await respond("?portfolioId=1", page(FIRST), 0);
  await comesTo(2);
});

it("adds older rows only to the list that they continue", async () => {
  const { rerender } = render(list(1));
  await respond("?portfolioId=1", page(FIRST, 7), 0);
  fireEvent.click(await screen.findByText("更早的记录"));
  rerender(list(2));
  await respond("?portfolioId=2", page(SECOND), 1);
  await respond("?portfolioId=1&before=7", page([row(4, 1)], 4), 0);
  await comesTo(2);
  expect(screen.queryByText("更早的记录")).toBeNull();
});

it("adds older rows once after two clicks", async () => {
  render(list(1));
  await respond("?portfolioId=1", page(FIRST, 7), 0);
  fireEvent.click(await screen.findByText("更早的记录"));
  fireEvent.click(screen.getByText("更早的记录"));
  // The second click asks again, and the first answer is dropped.
  await respond("?portfolioId=1&before=7", page([row(4, 1)], 4), 1);
  await respond("?portfolioId=1&before=7", page([row(4, 1)], 4), 0);
  await comesTo(4);
});

it("shows why it could not be read, and keeps the rows that it has", async () => {
  render(list(1));
  await respond("?portfolioId=1", page(FIRST, 7), 0);
  fireEvent.click(await screen.findByText("更早的记录"));
  const refused = Response.json({ error: "数据库没有响应" }, { status: 500 });
  await respond("?portfolioId=1&before=7", refused, 0);
  expect((await screen.findByRole("alert")).textContent).toBe("数据库没有响应");
  await comesTo(3);
});
