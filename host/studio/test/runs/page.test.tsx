// The list of runs, as a user sees it.
import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STATUSES } from "../../src/runs/filter.ts";
import type { Run } from "../../src/runs/read.ts";
import { accessOf, problem } from "../host.ts";
import { show } from "../show.tsx";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

/** Height of a row, which the list has without a layout, too. */
const ROW_PX = 36;

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

/** Shows 250 runs, and scrolls to a row of the second page. Returns the element that scrolls. */
async function showSecondPage(route: string, status: Run["status"]) {
  runs = Array.from({ length: 250 }, (_, index) => runOf(`r${index}`, 1_000 - index, { status }));
  const { readAgain } = show(route);
  const table = await screen.findByRole("table", { name: /Runs/ });
  const box = table.parentElement as HTMLElement;
  const scrollTo = (index: number) => {
    box.scrollTop = ROW_PX * index;
    fireEvent.scroll(box);
  };
  scrollTo(95);
  await waitFor(() => expect(asked.map((search) => search.get("cursor"))).toContain("100"));
  scrollTo(120);
  await screen.findByRole("link", { name: "r120" });
  return { box, readAgain: () => act(readAgain) };
}

const statusOf = (name: string) =>
  screen.getByRole("link", { name }).closest("tr")?.textContent?.includes("completed");

test("a run of a further page that has ended is shown as ended", async () => {
  const { readAgain } = await showSecondPage("/runs", "running");
  expect(statusOf("r120")).toBe(false);
  runs = runs.map((run) => (run.run === "r120" ? { ...run, status: "completed" } : run));
  await readAgain();
  expect(statusOf("r120")).toBe(true);
  expect(statusOf("r121")).toBe(false);
});

test("a run that no longer matches goes away, and the list and the focus stay in place", async () => {
  const { box, readAgain } = await showSecondPage("/runs?status=running", "running");
  screen.getByRole("link", { name: "r122" }).focus();
  const ended = ["r3", "r110", "r122"];
  runs = runs.map((run) => (ended.includes(run.run) ? { ...run, status: "completed" } : run));
  await readAgain();
  expect(screen.queryByRole("link", { name: "r122" })).toBeNull();
  expect(document.activeElement?.textContent).toBe("r123");
  // Two rows above the visible ones are gone.
  expect(box.scrollTop).toBe(ROW_PX * 118);
});

test("new runs do not move the rows that a user sees", async () => {
  const { box, readAgain } = await showSecondPage("/runs", "completed");
  screen.getByRole("link", { name: "r121" }).focus();
  runs = [runOf("new", 2_000), ...runs];
  await readAgain();
  expect(box.scrollTop).toBe(ROW_PX * 121);
  expect(document.activeElement?.textContent).toBe("r121");
});

test("however many pages were read, an interval has two requests", async () => {
  const { box, readAgain } = await showSecondPage("/runs", "completed");
  box.scrollTop = ROW_PX * 195;
  fireEvent.scroll(box);
  await waitFor(() => expect(asked.map((search) => search.get("cursor"))).toContain("200"));
  await screen.findByRole("link", { name: "r200" });
  asked = [];
  for (let times = 0; times < 4; times += 1) await readAgain();
  const cursors = asked.map((search) => search.get("cursor"));
  expect(cursors.filter((cursor) => cursor === null)).toHaveLength(4);
  expect(cursors).toHaveLength(8);
  expect(new Set(cursors)).toEqual(new Set([null, "100", "200"]));
});
