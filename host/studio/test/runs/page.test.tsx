// The list of runs, as a user sees it.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STATUSES } from "../../src/runs/filter.ts";
import type { Run } from "../../src/runs/read.ts";
import { accessOf, problem } from "../host.ts";
import { show } from "../show.tsx";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

let runs: Run[];
/** How many runs the host examines for a page. */
let examined: number;
let refusal: (() => Response) | undefined;
let asked: URLSearchParams[];

beforeEach(() => {
  runs = [];
  examined = Number.POSITIVE_INFINITY;
  refusal = undefined;
  asked = [];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    const { pathname, searchParams } = new URL(url);
    if (pathname === "/api/v1/apps") return Response.json([]);
    if (pathname === "/api/v1/run-counts") return Response.json(countsOf(searchParams));
    if (pathname !== "/api/v1/runs") return Response.json(accessOf({}));
    asked.push(searchParams);
    return refusal?.() ?? Response.json(pageOf(searchParams));
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Returns a run that was requested at this time, and took a second. */
function runOf(id: string, created_ms: number, values: Partial<Run> = {}): Run {
  const thread = `thread of ${id}`;
  const times = { created_ms, started_ms: created_ms, ended_ms: created_ms + 1_000 };
  const names = { run: id, thread, thread_id: thread, app: "notes", graph: "main" };
  return { ...names, ...times, status: "completed", ...values };
}

function matches(run: Run, search: URLSearchParams): boolean {
  const isOf = run.run.includes(search.get("text") ?? "");
  return isOf && (search.get("status") ?? run.status) === run.status;
}

/** Returns the page that a request asks for. The cursor is the number of runs before it. */
function pageOf(search: URLSearchParams) {
  const [limit, cursor] = [Number(search.get("limit")), Number(search.get("cursor"))];
  const items: Run[] = [];
  for (let at = cursor; at < runs.length; at += 1) {
    if (items.length === limit || at - cursor === examined) return { items, next_cursor: `${at}` };
    const run = runs[at] as Run;
    if (matches(run, search)) items.push(run);
  }
  return { items };
}

function countsOf(search: URLSearchParams) {
  const found = runs.filter((run) => matches(run, search));
  const count = (status: string) => found.filter((run) => run.status === status).length;
  const by_status = Object.fromEntries(STATUSES.map((status) => [status, count(status)]));
  return { total: found.length, by_status, is_complete: Number.isFinite(examined) === false };
}

test("a list without runs says so, with a filter and without one", async () => {
  show("/runs");
  await screen.findByText(/no runs yet/);
  cleanup();
  show("/runs?status=failed");
  await screen.findByText(/No run matches/);
});

test("a run leads to its timeline and to its thread", async () => {
  const failure = { code: "timeout", message: "too slow", retryable: true };
  runs = [runOf("r2", 2, { status: "failed", failure, cost: 0.25 }), runOf("r1", 1)];
  show("/runs");
  const run = await screen.findByRole("link", { name: "r2" });
  expect(run.getAttribute("href")).toBe("/threads/thread%20of%20r2/runs/r2");
  const thread = screen.getByRole("link", { name: "thread of r2" });
  expect(thread.getAttribute("href")).toBe("/threads/thread%20of%20r2");
  expect(run.closest("tr")?.textContent).toMatch(/failed timeout.*1\.00 s0\.25/);
});

test("a filter is in the address and in the request, and its choices have numbers", async () => {
  runs = [runOf("bad", 2, { status: "failed" }), runOf("good", 1)];
  const { history } = show("/runs");
  await screen.findByRole("link", { name: "good" });
  await screen.findByRole("option", { name: "failed (1)" });
  screen.getByRole("option", { name: "pending (0)" });
  fireEvent.change(screen.getByLabelText("Status"), { target: { value: "failed" } });
  await waitFor(() => expect(screen.queryByRole("link", { name: "good" })).toBeNull());
  await screen.findByRole("link", { name: "bad" });
  expect(history.location.href).toBe("/runs?status=failed");
  expect(asked.at(-1)?.get("status")).toBe("failed");
  // The numbers are those of the other filters.
  screen.getByRole("option", { name: "All (2)" });
  fireEvent.click(screen.getByRole("link", { name: "Clear filters" }));
  await screen.findByRole("link", { name: "good" });
});

test("runs are found by the metadata of their threads", async () => {
  const { history } = show("/runs?status=failed");
  await screen.findByText("More filters");
  fireEvent.change(screen.getByLabelText("Metadata"), { target: { value: "customer" } });
  fireEvent.submit(screen.getByLabelText("Metadata"));
  await screen.findByText(/This is none: customer/);
  expect(history.location.href).toBe("/runs?status=failed");
  fireEvent.change(screen.getByLabelText("Metadata"), { target: { value: "customer=7" } });
  fireEvent.submit(screen.getByLabelText("Metadata"));
  await waitFor(() => expect(asked.at(-1)?.get("metadata")).toBe('{"customer":7}'));
  await screen.findByText("More filters (1)");
});

test("a match behind many runs is searched for", async () => {
  runs = Array.from({ length: 7 }, (_, index) => runOf(`r${index}`, 1_000 - index));
  examined = 6;
  show("/runs?text=r6");
  await screen.findByRole("link", { name: "r6" });
  expect(asked.map((search) => search.get("cursor"))).toEqual([null, "6"]);
  await screen.findByRole("option", { name: "All (1+)" });
});

test("a run that is new or has ended is marked for a moment", async () => {
  runs = [runOf("b", 2, { status: "running", ended_ms: null }), runOf("a", 1)];
  const { readAgain } = show("/runs");
  const row = (name: string) => screen.getByRole("link", { name }).closest("tr")?.dataset ?? {};
  await screen.findByRole("link", { name: "a" });
  runs = [runOf("c", 3), runOf("b", 2), runOf("a", 1)];
  void readAgain();
  await screen.findByRole("link", { name: "c" });
  expect(["a", "b", "c"].filter((name) => "marked" in row(name))).toEqual(["b", "c"]);
});

test("an operator sees the runs of all tenants, and their links name the tenant", async () => {
  runs = [runOf("theirs", 3, { tenant: "acme" })];
  show("/runs", { is_operator: true, tenant_header: "x-tenant" });
  await screen.findByRole("columnheader", { name: "Tenant" });
  const link = await screen.findByRole("link", { name: "theirs" });
  expect(link.getAttribute("href")).toBe("/threads/thread%20of%20theirs/runs/theirs?tenant=acme");
  expect(asked.at(-1)?.get("tenant")).toBe("*");
});

test("a failure is shown with its reason", async () => {
  refusal = () => problem(500, "the store is broken");
  show("/runs");
  await screen.findByText("the store is broken");
});
