// Checkpoints, the log and the thread, as a user sees them.
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { Checkpoint } from "../../src/state/read.ts";
import { accessOf, problem, threadOf } from "../host.ts";
import { called, checkpointed, log, RUN, runEnded, runStarted, taskStarted } from "../run/log.ts";
import { show } from "../show.tsx";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

let checkpoints: Checkpoint[];
let asked: URL[];
let tenants: (string | null)[];
let seals: () => Response;

const EVENTS = log(
  runStarted(),
  taskStarted("t1"),
  called("t1", 0, { summary: HOSTILE }),
  checkpointed(1),
  runEnded(),
);

function checkpointOf(id: number, state: object, values: Partial<Checkpoint> = {}): Checkpoint {
  return {
    id,
    step: id - 1,
    source: id === 1 ? "input" : "loop",
    run: RUN,
    at_ms: 1_000,
    next: [],
    changed: Object.keys(state),
    state,
    ...(id === 1 ? {} : { parent: id - 1 }),
    ...values,
  };
}

beforeEach(() => {
  [asked, tenants] = [[], []];
  seals = () => Response.json({ sealed_after: 0, last_seq: 7, seal: "5ea1" });
  checkpoints = [
    checkpointOf(1, { number: 1 }),
    checkpointOf(2, { number: 2, note: HOSTILE }),
    checkpointOf(3, { number: 2, note: HOSTILE, list: [1] }, { changed: ["list"] }),
  ];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async ({ url, headers }: Request) => {
    asked.push(new URL(url));
    tenants.push(headers.get("x-tenant"));
    return answer(new URL(url));
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

function answer({ pathname, searchParams }: URL): Response {
  const [, , , , thread = "", kind, id] = pathname.split("/");
  switch (kind) {
    case "checkpoints": {
      const found = checkpoints.find((it) => String(it.id) === id);
      return found === undefined ? problem(404, "no such checkpoint") : Response.json(found);
    }
    case "history": {
      const before = Number(searchParams.get("before") ?? Number.POSITIVE_INFINITY);
      const items = checkpoints.filter((it) => it.id < before).reverse();
      return Response.json(items.map(({ state, ...rest }) => rest));
    }
    case "graphs":
    case "open-calls":
      return Response.json([]);
    case "verify":
      return seals();
    case "runs":
      return Response.json([]);
    case "log":
      return Response.json({ items: EVENTS, last_seq: EVENTS.length });
    case "export":
      return new Response("{}\n");
    default:
      if (!pathname.startsWith("/api/v1/threads/")) return Response.json(accessOf({}));
      return Response.json({ ...THREAD, thread: decodeURIComponent(thread) });
  }
}

const THREAD = {
  ...threadOf("t1", 1),
  version: "ab".repeat(32),
  state: { number: 2 },
  next: [],
  interrupts: [],
};

const region = (name: string) => screen.findByRole("region", { name });

test("a checkpoint shows what differs from the one before, in its written channels", async () => {
  show("/threads/t1/checkpoints/3");
  const difference = await region("Difference to checkpoint 2");
  await within(difference).findByRole("list", { name: "list" });
  expect(within(difference).queryByText("number")).toBeNull();
  const state = within(await region("State")).getByRole("group", { name: "State" });
  expect(state.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(document.querySelector("img")).toBeNull();
  const before = screen.getByRole("link", { name: "Checkpoint 2" });
  expect(before.getAttribute("href")).toBe("/threads/t1/checkpoints/2");
});

test("a checkpoint can be compared with any other, by its address and by a form", async () => {
  const { history } = show("/threads/t1/checkpoints/3?against=1&tenant=acme");
  const difference = await region("Difference to checkpoint 1");
  const list = await within(difference).findByRole("list", { name: "Changed channels" });
  const channels = [...list.querySelectorAll("[data-channel]")];
  expect(channels.map((it) => it.getAttribute("data-channel"))).toEqual(["list", "note", "number"]);
  const field = screen.getByLabelText("Compare with checkpoint");
  fireEvent.change(field, { target: { value: "x" } });
  fireEvent.click(screen.getByRole("button", { name: "Compare" }));
  await screen.findByText("Enter the number of a checkpoint.");
  fireEvent.change(field, { target: { value: "2" } });
  fireEvent.click(screen.getByRole("button", { name: "Compare" }));
  await region("Difference to checkpoint 2");
  expect(history.location.href).toBe("/threads/t1/checkpoints/3?against=2&tenant=acme");
});

test("the requests name the tenant and the graph of the address", async () => {
  noteTenantHeader("x-tenant");
  show("/threads/t1/checkpoints/2?ns=sub%3At1&tenant=acme");
  await region("State");
  const reads = asked.filter(({ pathname }) => pathname.includes("/checkpoints/"));
  expect(reads.map(({ searchParams }) => searchParams.get("namespace"))).toContain("sub:t1");
  expect(tenants).toContain("acme");
});

test("the first checkpoint, and one whose predecessor was pruned, say so", async () => {
  show("/threads/t1/checkpoints/1");
  await screen.findByText(/no checkpoint before/);
  cleanup();
  checkpoints = checkpoints.slice(1);
  show("/threads/t1/checkpoints/2");
  await screen.findByText(/Checkpoint 1 cannot be compared/);
  await region("State");
  cleanup();
  show("/threads/t1/checkpoints/9");
  await screen.findByText(/no such checkpoint/);
});

test("a run shows its checkpoints, and a panel with the difference of one", async () => {
  const { history } = show(`/threads/t1/runs/${RUN}?view=state`);
  fireEvent.click(await screen.findByRole("link", { name: "3 · After superstep 1" }));
  const panel = await screen.findByRole("complementary", { name: "Checkpoint 3" });
  await within(panel).findByRole("region", { name: "Difference to checkpoint 2" });
  expect(history.location.href).toBe(`/threads/t1/runs/${RUN}?view=state&checkpoint=3`);
  const filter = asked.find(({ pathname }) => pathname.endsWith("/history"))?.searchParams;
  expect(filter?.get("filter")).toBe(JSON.stringify({ run: RUN }));
  fireEvent.click(within(panel).getByRole("button", { name: "Close" }));
  await waitFor(() => expect(screen.queryByRole("complementary")).toBeNull());
  expect(document.activeElement?.textContent).toBe("3 · After superstep 1");
});

test("a run shows its log, all of it or the events of one type", async () => {
  const { history } = show(`/threads/t1/runs/${RUN}?view=log`);
  await screen.findByRole("link", { name: "5 · run_ended" });
  expect(
    screen.getByText(/http\.send · <img src=x onerror=alert\(1\)> \[U\+202E\]gnp/),
  ).toBeDefined();
  fireEvent.change(screen.getByLabelText("Type"), { target: { value: "called" } });
  await waitFor(() => expect(screen.queryByRole("link", { name: "5 · run_ended" })).toBeNull());
  expect(history.location.href).toBe(`/threads/t1/runs/${RUN}?view=log&type=called`);
  fireEvent.click(screen.getByRole("link", { name: "3 · called" }));
  await screen.findByRole("complementary", { name: "Event 3" });
  const views = screen.getByRole("navigation", { name: "Views of the run" });
  const current = within(views).getByRole("link", { current: "page" });
  expect(current.textContent).toBe("Log");
});

test("a thread lists its checkpoints, and verifies its log", async () => {
  show("/threads/t1");
  const list = await screen.findByRole("list", { name: "Checkpoints, newest first" });
  await waitFor(() => expect(within(list).getAllByRole("link").length).toBe(3));
  fireEvent.click(screen.getByRole("button", { name: "Verify the log" }));
  await screen.findByText(/All seals fit/);
  expect(screen.getByText("5ea1")).toBeDefined();
  seals = () => problem(500, "event 4 was changed");
  fireEvent.click(screen.getByRole("button", { name: "Verify the log" }));
  await screen.findByText(/event 4 was changed/);
  expect(screen.queryByText(/All seals fit/)).toBeNull();
});

test("a thread is exported to a file whose name has nothing of a path", async () => {
  const saved = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => {});
  show(`/threads/${encodeURIComponent("../a b")}`);
  fireEvent.click(await screen.findByLabelText("with its blobs"));
  fireEvent.click(screen.getByRole("button", { name: "Export the thread" }));
  await waitFor(() => expect(saved).toHaveBeenCalled());
  const [link] = saved.mock.contexts as HTMLAnchorElement[];
  expect(link?.download).toBe("thread-_a_b.jsonl");
  const request = asked.find(({ pathname }) => pathname.endsWith("/export"));
  expect(request?.searchParams.get("blobs")).toBe("false");
});
