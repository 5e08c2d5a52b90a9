// The choice of a second run for a comparison, and what is said of both, as a user sees it.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { reached } from "@wattle/page/connection";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { EventOutline } from "../../src/api/log.ts";
import { problem, threadOf } from "../host.ts";
import { called, log, runEnded, runStarted, taskFinished, taskStarted } from "../run/log.ts";
import { serveStreams } from "../run/streams.ts";
import { show } from "../show.tsx";

/** Height of the lists. Without a layout they would have room for no row. */
const HEIGHT_PX = 440;

/** The threads of the runs, and the apps of these. */
const RUNS: Record<string, { thread: string; app: string }> = {
  r1: { thread: "t1", app: "notes" },
  r2: { thread: "t1", app: "notes" },
  r3: { thread: "t2", app: "notes" },
  r4: { thread: "t3", app: "tools" },
};

let asked: URL[];

beforeEach(() => {
  asked = [];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  serveStreams(answer);
});

afterEach(() => {
  cleanup();
  reached();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

function answer({ url }: Request): Response {
  const address = new URL(url);
  asked.push(address);
  const [kind, id = "", what] = address.pathname.replace("/api/v1/", "").split("/");
  if (kind === "runs" && id === "") {
    return Response.json({ items: ["r3", "r1"].map(runOf) });
  }
  if (kind === "runs") {
    return id in RUNS ? Response.json(runOf(id)) : problem(404, "no such run");
  }
  if (what === "runs") return Response.json(["r2", "r1"].map(runOf));
  if (what === "log") {
    const items = eventsOf(address.searchParams.get("run") ?? "");
    return Response.json({ items, last_seq: items.length });
  }
  return Response.json({ ...threadOf(id, 1), next: [], interrupts: [] });
}

function runOf(run: string) {
  const { thread = "", app = "" } = RUNS[run] ?? {};
  const rest = { graph: "main", status: "completed", created_ms: 1 };
  return { run, thread, thread_id: thread, app, ...rest };
}

/** Returns the log of a run, whose only call differs from those of the other runs. */
function eventsOf(run: string): EventOutline[] {
  const call = called("t1", 0, { result_digest: run });
  const events = log(runStarted(), taskStarted("t1"), call, taskFinished("t1"), runEnded());
  return events.map((event) => ({ ...event, run }));
}

const link = (name: string) => screen.findByRole("link", { name });

test("a run leads to the other runs of its thread", async () => {
  noteTenantHeader("x-tenant");
  const { history } = show("/threads/t1/runs/r1?tenant=acme");
  fireEvent.click(await link("Compare with another run"));
  const other = await link("r2");
  expect(history.location.href).toBe("/compare?left=t1%7Er1&tenant=acme");
  expect(other.getAttribute("href")).toBe("/compare?left=t1%7Er1&right=t1%7Er2&tenant=acme");
  // The run itself is not in the list.
  expect(screen.queryByRole("link", { name: "r1" })).toBeNull();
});

test("runs of other threads of the graph are listed, and the address says so", async () => {
  const { history } = show("/compare?left=t1~r1");
  fireEvent.click(await screen.findByRole("radio", { name: "Of the same graph" }));
  const other = await link("r3");
  expect(history.location.href).toBe("/compare?left=t1%7Er1&of=graph");
  const list = asked.find(({ pathname }) => pathname === "/api/v1/runs");
  expect(list?.searchParams.get("app")).toBe("notes");
  expect(list?.searchParams.get("graph")).toBe("main");
  fireEvent.click(other);
  await screen.findByText(
    "The runs have no common beginning: they part at the first step, at http.send.",
  );
  expect(history.location.href).toBe("/compare?left=t1%7Er1&right=t2%7Er3");
  expect(screen.queryByText(/different graphs/)).toBeNull();
});

test("a run is chosen by its id, whose thread the host knows", async () => {
  const { history } = show("/compare?left=t1~r1");
  const field = await screen.findByLabelText("Id of the other run");
  const choose = (id: string) => {
    fireEvent.change(field, { target: { value: id } });
    fireEvent.click(screen.getByRole("button", { name: "Compare" }));
  };
  choose(" ");
  await screen.findByText("Enter the id of a run.");
  choose("r1");
  await screen.findByText("This is the run itself.");
  choose("gone");
  await screen.findByText("There is no such run, or it belongs to another tenant.");
  choose(" r3 ");
  await waitFor(() => expect(history.location.href).toBe("/compare?left=t1%7Er1&right=t2%7Er3"));
});

test("runs of different graphs say so, with their apps", async () => {
  show("/compare?left=t1~r1&right=t3~r4");
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain("different graphs, notes / chat and tools / chat.");
});
