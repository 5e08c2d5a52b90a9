// The list of threads, as a user sees it.
import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STATUSES } from "../../src/threads/filter.ts";
import type { Thread } from "../../src/threads/read.ts";
import { accessOf, problem, threadOf } from "../host.ts";
import { show } from "../show.tsx";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

let threads: Thread[];
/** How many threads the host examines for a page. */
let examined: number;
let refusal: (() => Response) | undefined;
let asked: URLSearchParams[];

beforeEach(() => {
  threads = [];
  examined = Number.POSITIVE_INFINITY;
  refusal = undefined;
  asked = [];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    const { pathname, searchParams } = new URL(url);
    if (pathname === "/api/v1/apps") return Response.json([]);
    if (pathname === "/api/v1/thread-counts") return Response.json(countsOf(searchParams));
    if (pathname !== "/api/v1/threads") return Response.json(accessOf({}));
    asked.push(searchParams);
    return refusal?.() ?? Response.json(pageOf(searchParams));
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Returns true if a thread meets the conditions of a request. */
function matches(thread: Thread, search: URLSearchParams): boolean {
  const [status, text, tenant] = ["status", "text", "tenant"].map((name) => search.get(name));
  const isOf = tenant == null || tenant === "*" || tenant === thread.tenant;
  return isOf && thread.thread.includes(text ?? "") && (status ?? thread.status) === thread.status;
}

/** Returns the page that a request asks for. The cursor is the number of threads before it. */
function pageOf(search: URLSearchParams) {
  const [limit, cursor] = [Number(search.get("limit")), Number(search.get("cursor"))];
  const items: Thread[] = [];
  for (let at = cursor; at < threads.length; at += 1) {
    if (items.length === limit || at - cursor === examined) return { items, next_cursor: `${at}` };
    const thread = threads[at] as Thread;
    if (matches(thread, search)) items.push(thread);
  }
  return { items };
}

function countsOf(search: URLSearchParams) {
  const found = threads.filter((thread) => matches(thread, search));
  const count = (status: string) => found.filter((thread) => thread.status === status).length;
  const by_status = Object.fromEntries(STATUSES.map((status) => [status, count(status)]));
  return { total: found.length, by_status, is_complete: Number.isFinite(examined) === false };
}

/** Enters a value into a field. */
function enter(label: string, value: string): void {
  const field = screen.getByLabelText(label);
  fireEvent.change(field, { target: { value } });
  fireEvent.submit(field);
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
  await waitFor(() => expect(asked.map((search) => search.get("cursor"))).toContain("100"));
});

test("a filter is in the address and in the request, and its choices have numbers", async () => {
  threads = [threadOf("bad", 2, { status: "error" }), threadOf("good", 1)];
  const { history } = show("/threads");
  await screen.findByRole("link", { name: "good" });
  await screen.findByRole("option", { name: "error (1)" });
  screen.getByRole("option", { name: "running (0)" });
  fireEvent.change(screen.getByLabelText("Status"), { target: { value: "error" } });
  await waitFor(() => expect(screen.queryByRole("link", { name: "good" })).toBeNull());
  await screen.findByRole("link", { name: "bad" });
  expect(history.location.href).toBe("/threads?status=error");
  expect(asked.at(-1)?.get("status")).toBe("error");
  // The numbers are those of the other filters.
  screen.getByRole("option", { name: "All (2)" });
  screen.getByRole("option", { name: "idle (1)" });
});

test("a text is searched when it is complete, and removed with the filters", async () => {
  threads = [threadOf("one", 2), threadOf("two", 1)];
  const { history } = show("/threads");
  await screen.findByRole("link", { name: "one" });
  fireEvent.change(screen.getByLabelText("Search"), { target: { value: " tw" } });
  expect(history.location.href).toBe("/threads");
  enter("Search", " two ");
  await waitFor(() => expect(screen.queryByRole("link", { name: "one" })).toBeNull());
  await screen.findByRole("link", { name: "two" });
  expect(history.location.href).toBe("/threads?text=two");
  expect(screen.getByLabelText("Search")).toHaveProperty("value", " two ");
  fireEvent.click(screen.getByRole("link", { name: "Clear filters" }));
  await screen.findByRole("link", { name: "one" });
  expect(screen.getByLabelText("Search")).toHaveProperty("value", "");
});

test("a value that is not valid stays in its field with the reason", async () => {
  const { history } = show("/threads?failure=timeout");
  await screen.findByText("More filters (1)");
  enter("Metadata", "customer");
  await screen.findByText(/This is none: customer/);
  expect(history.location.href).toBe("/threads?failure=timeout");
  enter("Metadata", "customer=7");
  await waitFor(() => expect(asked.at(-1)?.get("metadata")).toBe('{"customer":7}'));
  expect(screen.queryByText(/This is none/)).toBeNull();
  enter("Created since", "2025-01-15T10:30");
  const ms = new Date(2025, 0, 15, 10, 30).getTime();
  await waitFor(() => expect(asked.at(-1)?.get("created_from_ms")).toBe(`${ms}`));
  await screen.findByText("More filters (3)");
});

test("a row has the metadata and the message of the failure for large screens", async () => {
  const failure = { code: "timeout", message: "too slow", retryable: true };
  const metadata = { customer: 7, note: "x".repeat(1_000) };
  threads = [threadOf("bad", 2, { status: "error", failure, metadata }), threadOf("good", 1)];
  show("/threads");
  const cells = async (name: string) => {
    const row = (await screen.findByRole("link", { name })).closest("tr");
    return Array.from(row?.cells ?? [], ({ textContent }) => textContent).slice(-2);
  };
  const [written, said] = await cells("bad");
  expect(written).toMatch(/^\{"customer":7,"note":"x{200,300}…$/);
  expect(said).toBe("too slow");
  expect(await cells("good")).toEqual(["", ""]);
});

test("an operator sees the threads of all tenants, each with its tenant, or those of one", async () => {
  threads = [threadOf("theirs", 3, { tenant: "acme" }), threadOf("others", 2, { tenant: "b" })];
  show("/threads", { is_operator: true, tenant_header: "x-tenant" });
  await screen.findByRole("columnheader", { name: "Tenant" });
  const other = screen.getByRole("link", { name: "others" });
  expect(other.getAttribute("href")).toBe("/threads/others?tenant=b");
  expect(asked.at(-1)?.get("tenant")).toBe("*");
  enter("Tenant", "acme");
  await waitFor(() => expect(screen.queryByRole("link", { name: "others" })).toBeNull());
  const link = await screen.findByRole("link", { name: "theirs" });
  expect(link.getAttribute("href")).toBe("/threads/theirs?tenant=acme");
  expect(asked.at(-1)?.get("tenant")).toBe("acme");
  expect(screen.queryByRole("columnheader", { name: "Tenant" })).toBeNull();
});

test("a thread without a tenant has no link on a host with tenants", async () => {
  threads = [threadOf("theirs", 3, { tenant: "acme" }), threadOf("unowned", 2)];
  show("/threads", { is_operator: true, tenant_header: "x-tenant" });
  await screen.findByRole("link", { name: "theirs" });
  screen.getByText("unowned");
  expect(screen.queryByRole("link", { name: "unowned" })).toBeNull();
  cleanup();
  show("/threads", { is_operator: true });
  await screen.findByRole("link", { name: "unowned" });
});

test("a match behind many threads is searched for, and is not lost when the list is read again", async () => {
  threads = Array.from({ length: 7 }, (_, index) => threadOf(`t${index}`, 1_000 - index));
  examined = 6;
  const { readAgain } = show("/threads?text=t6");
  await screen.findByRole("link", { name: "t6" });
  await act(readAgain);
  screen.getByRole("link", { name: "t6" });
  expect(asked.map((search) => search.get("cursor"))).toEqual([null, "6", null, "6"]);
  await screen.findByRole("option", { name: "All (1+)" });
});

test("a row that is new or has changed is marked for a moment", async () => {
  threads = [threadOf("b", 2), threadOf("a", 1)];
  const { readAgain } = show("/threads");
  const row = (name: string) => screen.getByRole("link", { name }).closest("tr")?.dataset ?? {};
  await screen.findByRole("link", { name: "a" });
  expect(row("b")).not.toHaveProperty("marked");
  threads = [threadOf("c", 4), threadOf("a", 3), threadOf("b", 2)];
  void readAgain();
  await screen.findByRole("link", { name: "c" });
  expect(["a", "b", "c"].filter((name) => "marked" in row(name))).toEqual(["a", "c"]);
  await waitFor(() => expect(row("a")).not.toHaveProperty("marked"), { timeout: 5_000 });
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
