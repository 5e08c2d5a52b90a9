// Forks from the view of a run, and the comparison of two runs, as a user sees them.
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { reached } from "@wattle/page/connection";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { EventOutline } from "../../src/api/log.ts";
import { problem, threadOf } from "../host.ts";
import {
  called,
  checkpointed,
  type Kind,
  log,
  logFrom,
  runEnded,
  runStarted,
  taskFailed,
  taskFinished,
  taskStarted,
} from "../run/log.ts";
import { type OpenedStream, serveStreams } from "../run/streams.ts";
import { show } from "../show.tsx";

/** Height of the lists. Without a layout they would have room for no row. */
const HEIGHT_PX = 440;

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

/** The event of the call that failed. */
const CALL = 4;

const BROKEN = log(
  runStarted(),
  taskStarted("t1"),
  called("t1", 0),
  called("t1", 1, { ok: false, failure: { code: "unavailable", message: HOSTILE } }),
  taskFailed("t1"),
  runEnded("failed", { failure: { code: "unavailable", message: HOSTILE } }),
);

const MENDED = logFrom(
  8,
  runStarted("fork"),
  { type: "forked", from: 1, call: { task: "t1", call: 1, seq: CALL } },
  checkpointed(0, { source: "fork" }),
  taskStarted("t1"),
  called("t1", 0, { reused: 3 }),
  called("t1", 1),
  taskFinished("t1"),
  checkpointed(1),
  runEnded(),
).map((event) => ({ ...event, run: "r2" }));

let sent: { path: string; tenant: string | null; body: unknown }[];
let logs: Record<string, readonly EventOutline[]>;
/** Results of the calls of a thread; by default one that all have. */
let results: Record<string, unknown>;
/** End states by thread. */
let states: Record<string, object>;
let opened: OpenedStream[];
let refusal: Response | undefined;
/** What the host waits for before it starts a fork. */
let held: Promise<void> | undefined;
/** The response to the newest fork. */
let started: Response | undefined;

// The view is loaded when it is opened. A busy machine takes longer for that than a test waits.
beforeAll(() => import("../../src/run/page.tsx"));

beforeEach(() => {
  [sent, refusal, held, started] = [[], undefined, undefined, undefined];
  logs = { t1: BROKEN, copy: MENDED };
  [results, states] = [{}, {}];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  opened = serveStreams(answer);
});

afterEach(() => {
  cleanup();
  reached();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

async function answer(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const [, , , , thread = "", what] = pathname.split("/");
  if (request.method === "POST") {
    const tenant = request.headers.get("x-tenant");
    sent.push({ path: pathname, tenant, body: await request.json() });
    await held;
    const run = { run: "r2", thread: "copy", thread_id: "copy", status: "running" };
    started = refusal ?? Response.json(run, { status: 202 });
    return started;
  }
  if (pathname.startsWith("/api/v1/runs/")) {
    return Response.json({ run: "r1", thread: "t1", status: "failed" });
  }
  if (what === undefined)
    return Response.json({ ...threadOf(thread, 1), next: [], interrupts: [] });
  if (what === "checkpoints") {
    const rest = { id: 2, source: "loop", step: 1, run: "r1", at_ms: 0, changed: [], next: [] };
    return Response.json({ ...rest, state: states[thread] ?? {} });
  }
  if (what === "open-calls") return Response.json([]);
  const events = logs[thread];
  if (events === undefined) return problem(404, "no such thread");
  return Response.json(logPage(thread, events, searchParams));
}

function logPage(thread: string, events: readonly EventOutline[], search: URLSearchParams) {
  const last_seq = events.at(-1)?.seq ?? 0;
  const items = events.filter(({ seq }) => seq > Number(search.get("after")));
  if (search.has("outline")) return { items, last_seq };
  const [first] = items;
  const failure = { code: "unavailable", message: HOSTILE };
  const result =
    first?.seq === CALL ? { Err: failure } : (results[thread] ?? { Ok: { status: 200 } });
  return { items: [{ ...first, request: { url: HOSTILE }, result }], last_seq };
}

const button = (name: string) => screen.findByRole("button", { name });

test("a call that failed gets a result, and both runs are compared", async () => {
  noteTenantHeader("x-tenant");
  const { history } = show(`/threads/t1/runs/r1?at=${CALL}&tenant=acme`);
  fireEvent.click(await button("Fork with another answer"));
  const editor = screen.getByLabelText<HTMLTextAreaElement>("Result in the fork");
  expect(JSON.parse(editor.value)).toMatchObject({ status: 200, url: HOSTILE });
  fireEvent.change(editor, { target: { value: "{" } });
  fireEvent.click(await button("Start the fork"));
  expect(sent).toEqual([]);
  fireEvent.change(editor, { target: { value: '{"status":201}' } });
  fireEvent.click(await button("Start the fork"));
  await screen.findByRole("heading", { name: "Compare two runs" });
  const call = { seq: CALL, answer: { status: 201 } };
  const path = "/api/v1/threads/t1/fork";
  expect(sent).toEqual([{ path, tenant: "acme", body: { call, copy: true } }]);
  expect(history.location.href).toBe("/compare?left=t1%7Er1&right=copy%7Er2&tenant=acme");
});

test("a call can fail in the fork, in the thread itself", async () => {
  show("/threads/t1/runs/r1?at=3");
  fireEvent.click(await button("Fork with another answer"));
  const editor = screen.getByLabelText<HTMLTextAreaElement>("Result in the fork");
  expect(JSON.parse(editor.value)).toEqual({ status: 200 });
  fireEvent.click(screen.getByRole("radio", { name: "fails" }));
  const failure = { code: "timeout", message: "too slow" };
  const field = screen.getByLabelText("Failure in the fork");
  fireEvent.change(field, { target: { value: JSON.stringify(failure) } });
  fireEvent.click(screen.getByRole("checkbox"));
  fireEvent.click(await button("Start the fork"));
  await waitFor(() => expect(sent.length).toBe(1));
  expect(sent[0]?.body).toEqual({ call: { seq: 3, failure }, copy: false });
});

test("a fork from a checkpoint may have an input, and needs one where nothing runs next", async () => {
  logs = { t1: MENDED.map((event) => ({ ...event, run: "r1" })), copy: [] };
  // The last checkpoint, at which no node runs next.
  const { history } = show("/threads/t1/runs/r1?at=15");
  fireEvent.click(await button("Fork from this checkpoint"));
  fireEvent.click(await button("Start the fork"));
  await screen.findByText("Enter a JSON value.");
  fireEvent.change(screen.getByLabelText("Input"), { target: { value: '{"n":1}' } });
  fireEvent.click(await button("Start the fork"));
  await waitFor(() => expect(history.location.pathname).toBe("/compare"));
  expect(sent[0]?.body).toEqual({ checkpoint: 2, input: { n: 1 }, copy: true });
});

test("a refusal of the host is shown, and what was entered stays", async () => {
  refusal = problem(409, HOSTILE);
  show("/threads/t1/runs/r1?at=3");
  fireEvent.click(await button("Fork with another answer"));
  fireEvent.click(await button("Start the fork"));
  const alert = await screen.findByText(/The fork was not started/);
  expect(alert.textContent).toContain("[U+202E]gnp");
  expect(screen.getByLabelText<HTMLTextAreaElement>("Result in the fork").value).toContain("200");
});

test("a user who leaves before a fork has started stays where they are", async () => {
  let release: () => void = () => undefined;
  held = new Promise((resolve) => {
    release = resolve;
  });
  const { history } = show("/threads/t1/runs/r1?at=3");
  fireEvent.click(await button("Fork with another answer"));
  fireEvent.click(await button("Start the fork"));
  await waitFor(() => expect(sent.length).toBe(1));
  fireEvent.click(screen.getByRole("link", { name: "Log" }));
  await screen.findByLabelText("Type");
  release();
  await waitFor(() => expect(started?.bodyUsed).toBe(true));
  expect(history.location.href).toBe("/threads/t1/runs/r1?view=log");
});

test("a call whose result the host does not replace says so, and what never fails does not", async () => {
  const calls = [
    called("t1", 0, { function: "emit.custom" }),
    called("t1", 1, { function: "clock.now" }),
  ];
  logs = { t1: log(runStarted(), taskStarted("t1"), ...calls, taskFinished("t1"), runEnded()) };
  show("/threads/t1/runs/r1?at=3");
  await screen.findByText(/^A fork cannot replace the result of this call: /);
  expect(screen.queryByRole("button", { name: /^Fork/ })).toBeNull();
  cleanup();
  show("/threads/t1/runs/r1?at=4");
  fireEvent.click(await button("Fork with another answer"));
  screen.getByLabelText("Result in the fork");
  expect(screen.queryByRole("radio", { name: "fails" })).toBeNull();
});

test("a key that may only read forks nothing", async () => {
  show("/threads/t1/runs/r1?at=3", { scope: "read" });
  const panel = await screen.findByRole("complementary");
  await within(panel).findByRole("group", { name: "Result" });
  expect(within(panel).queryByRole("button", { name: /^Fork/ })).toBeNull();
});

const COMPARED = "/compare?left=t1~r1&right=copy~r2";

const cells = () =>
  screen
    .getAllByRole("row")
    .slice(1)
    .map((row) => within(row).getAllByRole("cell").slice(0, 3))
    .map((all) => all.map((cell) => cell.textContent));

test("two runs are shown from where they part, and before that on request", async () => {
  show(COMPARED);
  await screen.findByText("The runs part at http.send.");
  const table = await screen.findByRole("table");
  await within(table).findAllByText("differs");
  expect(within(table).queryByText("same")).toBeNull();
  fireEvent.click(await button("Show the 3 rows before"));
  await within(table).findByText("same");
  expect(cells().length).toBe(6);
  const left = screen.getByRole("region", { name: "Left run" });
  expect(left.textContent).toContain("[U+202E]gnp");
  const right = screen.getByRole("region", { name: "Right run" });
  expect(right.textContent).toContain("Fork at call 1 (event 4)");
  expect(document.querySelector("img")).toBeNull();
});

test("the rows of a pair are shown together, and their address leads to them", async () => {
  const { history } = show(COMPARED);
  const table = await screen.findByRole("table");
  const [call] = await within(table).findAllByRole("link", { name: "http.send" });
  if (call === undefined) throw new Error("the call is shown");
  fireEvent.click(call);
  const panel = await screen.findByRole("complementary", { name: "http.send" });
  await waitFor(() =>
    expect(within(panel).getAllByRole("group", { name: "Request" }).length).toBe(2),
  );
  const [left, right] = ["Left run", "Right run"].map((name) =>
    within(panel).getByRole("region", { name }),
  );
  expect(left?.textContent).toContain("unavailable");
  expect(right?.textContent).toContain("200");
  const route = history.location.href;
  cleanup();
  show(route);
  await screen.findByRole("complementary", { name: "http.send" });
  fireEvent.click(screen.getByRole("button", { name: "Close" }));
  await waitFor(() => expect(screen.queryByRole("complementary")).toBeNull());
});

test("the values of two calls that differ have their difference", async () => {
  const other = called("t1", 0, { result_digest: "12".repeat(32) });
  const ended = (call: Kind, run: string) =>
    log(runStarted(), taskStarted("t1"), call, taskFinished("t1"), runEnded()).map((event) => ({
      ...event,
      run,
    }));
  logs = { t1: ended(called("t1", 0), "r1"), copy: ended(other, "r2") };
  results = { copy: { Ok: { status: 404, note: HOSTILE } } };
  show("/compare?left=t1~r1&right=copy~r2");
  const table = await screen.findByRole("table");
  const [call] = await within(table).findAllByRole("link", { name: "http.send" });
  if (call === undefined) throw new Error("the call is shown");
  fireEvent.click(call);
  const list = await screen.findByRole("list", { name: "Difference of the results" });
  expect(list.textContent).toMatch(/status.*200.*404/);
  expect(list.textContent).toContain("[U+202E]gnp");
  expect(screen.queryByRole("list", { name: "Difference of the requests" })).toBeNull();
});

test("the end states of two runs have their difference, at an address of its own", async () => {
  logs = { t1: MENDED.map((event) => ({ ...event, run: "r1" })), copy: MENDED };
  const message = (id: string) => ({ id, role: "user", content: "hi" });
  states = {
    t1: { count: 1, messages: [message("a")] },
    copy: { count: 2, messages: [message("b")], note: HOSTILE },
  };
  const { history } = show(COMPARED);
  fireEvent.click(await button("Compare the end states"));
  const name = "Difference of the end states";
  const panel = await screen.findByRole("complementary", { name });
  const list = await within(panel).findByRole("list", { name: "Changed channels" });
  const channels = [...list.children].map((item) => item.getAttribute("data-channel"));
  expect(channels).toEqual(["count", "note"]);
  expect(list.textContent).toContain("[U+202E]gnp");
  expect(within(panel).getAllByRole("link", { name: "Checkpoint 2" }).length).toBe(2);
  const route = history.location.href;
  cleanup();
  show(route);
  fireEvent.click(await button("Close"));
  await waitFor(() => expect(screen.queryByRole("complementary")).toBeNull());
  expect(document.activeElement?.textContent).toBe("Compare the end states");
});

test("a run without a checkpoint has no end state", async () => {
  show(`${COMPARED}&show=states`);
  const panel = await screen.findByRole("complementary");
  expect(panel.textContent).toContain("The run has made no checkpoint.");
  expect(within(panel).getAllByRole("link").length).toBe(1);
});

test("states of a run that goes on are not read", async () => {
  logs = { t1: MENDED.map((event) => ({ ...event, run: "r1" })), copy: MENDED.slice(0, -1) };
  states = { t1: { count: 1 }, copy: { count: 2 } };
  show(`${COMPARED}&show=states`);
  const panel = await screen.findByRole("complementary");
  expect(panel.textContent).toContain("The run has not ended.");
  await waitFor(() => expect(opened.length).toBe(1));
  expect(within(panel).getAllByRole("link").length).toBe(1);
  opened[0]?.send(...MENDED.slice(-1));
  const list = await within(panel).findByRole("list", { name: "Changed channels" });
  expect(list.textContent).toContain("count");
});

test("of two runs that go on, only the right one has a stream", async () => {
  logs = { t1: BROKEN.slice(0, 3), copy: MENDED.slice(0, 5) };
  show(COMPARED);
  await waitFor(() => expect(opened.length).toBe(1));
  expect(opened[0]?.url.pathname).toBe("/api/v1/threads/copy/events");
  await screen.findByRole("table");
  const more = MENDED.slice(5);
  opened[0]?.send(...more);
  await screen.findByText("completed");
  expect(opened.length).toBe(1);
});

test("a run that is not there says so, and so does an address without runs", async () => {
  show("/compare?left=t1~r1&right=gone~r9");
  await screen.findByText(/There is no such run/);
  cleanup();
  show("/compare?left=t1&right=copy~r2");
  await screen.findByText(/The address names no two runs/);
});
