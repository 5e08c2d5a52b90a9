// The list of threads, as a user sees it.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AccessProvider } from "../../src/access/access.tsx";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { Access } from "../../src/access/scope.ts";
import { createStudioRouter } from "../../src/router/router.tsx";
import type { Thread } from "../../src/threads/read.ts";
import { accessOf, problem, threadOf } from "../host.ts";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

let threads: Thread[];
let refusal: (() => Response) | undefined;
let asked: { search: URLSearchParams; tenant: string | null }[];

beforeEach(() => {
  threads = [];
  refusal = undefined;
  asked = [];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async ({ url, headers }: Request) => {
    const { pathname, searchParams } = new URL(url);
    if (pathname === "/api/v1/apps") return Response.json([]);
    if (pathname !== "/api/v1/threads") return Response.json(accessOf({}));
    asked.push({ search: searchParams, tenant: headers.get("x-tenant") });
    return refusal?.() ?? Response.json(pageOf(searchParams));
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

/** Returns the page that a request asks for. */
function pageOf(search: URLSearchParams) {
  const [limit, cursor] = [Number(search.get("limit")), Number(search.get("cursor"))];
  const status = search.get("status");
  const found = threads.filter((thread) => status === null || thread.status === status);
  const end = cursor + limit;
  const items = found.slice(cursor, end);
  return end < found.length ? { items, next_cursor: `${end}` } : { items };
}

/** Shows the studio at a route. */
function show(route: string, access: Partial<Access> = {}) {
  const history = createMemoryHistory({ initialEntries: [route] });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <AccessProvider access={accessOf(access)}>
        <RouterProvider router={createStudioRouter(history)} />
      </AccessProvider>
    </QueryClientProvider>,
  );
  return history;
}

test("a list without threads says so, with a filter and without one", async () => {
  show("/threads");
  await screen.findByText(/no threads yet/);
  cleanup();
  show("/threads?status=error");
  await screen.findByText(/No thread matches/);
});

test("only visible rows are rendered, and further pages are read at the end", async () => {
  threads = Array.from({ length: 250 }, (_, index) => threadOf(`t${index}`, 1_000 - index));
  show("/threads");
  const table = await screen.findByRole("table", { name: /Threads/ });
  await screen.findByRole("link", { name: "t0" });
  expect(screen.getAllByRole("row").length).toBeLessThan(60);
  const box = table.parentElement as HTMLElement;
  box.scrollTop = 36 * 95;
  fireEvent.scroll(box);
  await waitFor(() => expect(asked.map(({ search }) => search.get("cursor"))).toContain("100"));
});

test("a filter is in the address and in the request", async () => {
  threads = [threadOf("bad", 2, { status: "error" }), threadOf("good", 1)];
  const history = show("/threads");
  await screen.findByRole("link", { name: "good" });
  fireEvent.change(screen.getByLabelText("Status"), { target: { value: "error" } });
  await waitFor(() => expect(screen.queryByRole("link", { name: "good" })).toBeNull());
  await screen.findByRole("link", { name: "bad" });
  expect(history.location.href).toBe("/threads?status=error");
  expect(asked.at(-1)?.search.get("status")).toBe("error");
});

test("the operator names the tenant whose threads are listed", async () => {
  noteTenantHeader("x-tenant");
  refusal = () => problem(401, "no tenant", { missing: "tenant", header: "x-tenant" });
  show("/threads", { is_operator: true, tenant_header: "x-tenant" });
  await screen.findByText(/Enter the tenant/);
  refusal = undefined;
  threads = [threadOf("theirs", 1)];
  const field = screen.getByLabelText("Tenant");
  fireEvent.change(field, { target: { value: "acme" } });
  fireEvent.blur(field);
  const link = await screen.findByRole("link", { name: "theirs" });
  expect(link.getAttribute("href")).toBe("/threads/theirs?tenant=acme");
  expect(asked.at(-1)?.tenant).toBe("acme");
});

test("a failure is shown with its reason", async () => {
  refusal = () => problem(500, "the store is broken");
  show("/threads");
  await screen.findByText("the store is broken");
  expect(screen.getAllByRole("alert").length).toBe(1);
});

test("an address without a view says so", async () => {
  show("/nowhere");
  await screen.findByText("Nothing is at this address");
});
