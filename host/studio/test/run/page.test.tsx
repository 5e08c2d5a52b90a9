// The view of a run, as a user sees it.
import { act, cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { reached } from "@wattle/page/connection";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { EventOutline } from "../../src/api/log.ts";
import { accessOf, problem, threadOf } from "../host.ts";
import { show } from "../show.tsx";
import {
  called,
  callStarted,
  checkpointed,
  log,
  logFrom,
  manyCalls,
  RUN,
  runEnded,
  runStarted,
  streamed,
  taskFailed,
  taskFinished,
  taskStarted,
  text,
} from "./log.ts";
import { type OpenedStream, serveStreams } from "./streams.ts";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

const ROUTE = `/threads/t1/runs/${RUN}`;

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

let events: EventOutline[];
let details: Record<number, object>;
let state: object;
let opened: OpenedStream[];
let pages: URLSearchParams[];
let tenants: (string | null)[];
let refusal: Response | undefined;
let seals: object;
let checkpoint: object;
let thread: object | Promise<object>;
let keyNames: object[];

// The view is loaded when it is opened. A busy machine takes longer for that than a test waits.
beforeAll(() => import("../../src/run/page.tsx"));

beforeEach(() => {
  refusal = undefined;
  keyNames = [];
  [events, details, state, thread, pages, tenants] = [[], {}, {}, {}, [], []];
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  opened = serveStreams(async ({ url, headers }) => {
    const { pathname, searchParams } = new URL(url);
    tenants.push(headers.get("x-tenant"));
    if (pathname === "/api/v1/threads/t1/log")
      return refusal ?? Response.json(logPage(searchParams));
    if (pathname === `/api/v1/runs/${RUN}`) {
      return Response.json({ run: RUN, thread: "t1", thread_id: "t1", status: "running" });
    }
    if (pathname === "/api/v1/key-names") return Response.json(keyNames);
    if (pathname === "/api/v1/threads/t1/open-calls") return Response.json([]);
    if (pathname === "/api/v1/threads/t1/checkpoints/1") return Response.json(checkpoint);
    if (pathname === "/api/v1/threads/t1") {
      const rest = { run: "r2", state: {}, next: [], interrupts: [] };
      return Response.json({ ...threadOf("t1", 1), ...rest, ...(await thread) });
    }
    if (pathname === "/api/v1/threads/t1/verify") return Response.json(seals);
    if (pathname === "/api/v1/threads/t1/checkpoints/7") return Response.json({ id: 7, state });
    if (pathname.includes("/log")) return problem(404, "no such run");
    return Response.json(accessOf({}));
  });
});

afterEach(() => {
  cleanup();
  reached();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

/** Returns the page that a request asks for: outlines, or an event in full. */
function logPage(search: URLSearchParams) {
  pages.push(search);
  const after = Number(search.get("after"));
  const limit = Number(search.get("limit") ?? 500);
  const last_seq = events.at(-1)?.seq ?? 0;
  const items = events.filter(({ seq }) => seq > after).slice(0, limit);
  const next = items.at(-1)?.seq ?? last_seq;
  const shown = search.has("outline") ? items : items.map((it) => ({ ...it, ...details[it.seq] }));
  return { items: shown, last_seq, ...(next < last_seq ? { next_after: next } : {}) };
}

const link = (name: string) => screen.findByRole("link", { name });

test("a run that has ended is read page by page, and has no stream", async () => {
  events = manyCalls(1_200);
  show(ROUTE);
  await screen.findByText("Host calls: 1,200");
  await screen.findByText("completed");
  expect(pages.map((search) => search.get("after"))).toEqual(["0", "500", "1000"]);
  expect(opened).toEqual([]);
  // Only visible rows are rendered.
  expect(screen.getAllByRole("row").length).toBeLessThan(60);
});

test("a call shows its request and its result, and its address leads to it", async () => {
  events = log(runStarted(), taskStarted("t1"), called("t1", 0), taskFinished("t1"), runEnded());
  details = { 3: { request: { url: HOSTILE }, result: { Ok: { status: 200 } } } };
  const { history } = show(ROUTE);
  fireEvent.click(await link("http.send"));
  const panel = await screen.findByRole("complementary", { name: "http.send" });
  const request = await within(panel).findByRole("group", { name: "Request" });
  expect(request.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(within(panel).getByRole("group", { name: "Result" }).textContent).toContain("200");
  expect(document.querySelector("img")).toBeNull();
  expect(history.location.href).toBe(`${ROUTE}?at=3`);
  cleanup();
  show(`${ROUTE}?at=3`);
  await screen.findByRole("complementary", { name: "http.send" });
  expect(screen.getByRole("row", { current: true }).textContent).toContain("http.send");
  fireEvent.click(screen.getByRole("button", { name: "Close" }));
  await waitFor(() => expect(screen.queryByRole("complementary")).toBeNull());
});

test("a model call shows the messages that the host has added to its request", async () => {
  const completion = called("t1", 0, { function: "llm.complete" });
  const finished = taskFinished("t1", { base: 7 });
  events = log(runStarted(), taskStarted("t1"), completion, finished, runEnded());
  const history = { channel: "talk", at: 1, from: 1, to: 3, length: 3, bytes: 70_000 };
  details = { 3: { request: { route: "chat", history, messages: [] }, result: { Ok: {} } } };
  state = { talk: ["oldest", HOSTILE, "newest"] };
  show(`${ROUTE}?at=3`);
  const panel = await screen.findByRole("complementary", { name: "llm.complete" });
  await within(panel).findByText("2 messages of channel talk before this step");
  const before = within(panel).getByRole("link", { name: "State before this step" });
  expect(before.getAttribute("href")).toContain("/threads/t1/checkpoints/7");
  fireEvent.click(within(panel).getByRole("button", { name: "Messages of the history" }));
  const messages = await within(panel).findByRole("group", { name: "Messages of the history" });
  expect(messages.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(messages.textContent).toContain("newest");
  expect(messages.textContent).not.toContain("oldest");
});

test("messages that were sent to a task are not looked for in the state", async () => {
  const completion = called("t1", 0, { function: "llm.complete" });
  const finished = taskFinished("t1", { base: 7 });
  events = log(runStarted(), taskStarted("t1"), completion, finished, runEnded());
  const history = { channel: "talk", at: 0, from: 0, to: 1, length: 1, bytes: 70_000 };
  details = { 3: { request: { route: "chat", history, messages: [] }, result: { Ok: {} } } };
  state = { talk: ["of the state", "as well"] };
  show(`${ROUTE}?at=3`);
  await screen.findByText("1 message of channel talk before this step");
  fireEvent.click(screen.getByRole("button", { name: "Messages of the history" }));
  await screen.findByText(/another task sent this one its input/);
  expect(screen.queryByText(/of the state/)).toBeNull();
});

const ASKED = {
  type: "asked",
  interrupt: "q1",
  task: "t1",
  node: "node-t1",
  call: 0,
  payload: { bytes: 7, value: "Sure?" },
} as const;

test("a question shows who answered it in a later run", async () => {
  const answered = { type: "answered", interrupt: "q1", task: "t1", run: "r2" } as const;
  const principal = { key: "k1", user: "jane\u202e" };
  const asking = [runStarted(), taskStarted("t1"), ASKED, runEnded("interrupted")];
  events = log(...asking, { ...answered, principal, answer: { bytes: 5, value: "Yes" } });
  show(`${ROUTE}?at=3`);
  const panel = await screen.findByRole("complementary", { name: "Interrupt" });
  await within(panel).findByText("User jane[U+202E]");
  const answer = within(panel).getByRole("region", { name: "Answer" });
  expect(answer.textContent).toContain("Yes");
});

test("a question without an answer says so, and an answer says who gave it", async () => {
  const answered = { type: "answered", interrupt: "q0", task: "t0", answer: { bytes: 4 } } as const;
  events = log(runStarted("resume"), { ...answered, principal: { key: "k1" } }, ASKED);
  show(`${ROUTE}?at=3`);
  await screen.findByText("The log of the thread has no answer.");
  fireEvent.click(await link("Answer"));
  const panel = await screen.findByRole("complementary", { name: "Answer" });
  await within(panel).findByText("The key k1");
});

test("a key that answered has its name, and its id if the host has no name for it", async () => {
  const answered = { type: "answered", interrupt: "q1", task: "t1", run: "r2" } as const;
  const asking = [runStarted(), taskStarted("t1"), ASKED, runEnded("interrupted")];
  const answer = { bytes: 5, value: "Yes" };
  keyNames = [{ id: "k2", name: "Other" }];
  events = log(...asking, { ...answered, principal: { key: "k1" }, answer });
  const { readAgain } = show(`${ROUTE}?at=3`);
  const panel = await screen.findByRole("complementary", { name: "Interrupt" });
  await within(panel).findByText("The key k1");
  keyNames = [{ id: "k1", name: "Night shift\u202e" }];
  await readAgain();
  await within(panel).findByText("The key Night shift[U+202E] (k1)");
});

test("an answer is looked for in a bounded part of the log", async () => {
  const others = Array.from({ length: 2_100 }, (_, call) => called("t2", call, { run: "r2" }));
  events = log(runStarted(), taskStarted("t1"), ASKED, runEnded("interrupted"), ...others);
  show(`${ROUTE}?at=3`);
  await screen.findByText("No answer is among the next 2,000 events of the thread.");
  const searched = pages.filter((search) => search.get("types") === "answered");
  expect(searched.map((search) => search.get("after"))).toEqual(["3", "503", "1003", "1503"]);
});

test("an answer is looked for from the last position on", async () => {
  const asking = [runStarted(), taskStarted("t1"), ASKED, runEnded("interrupted")];
  events = log(...asking);
  const { readAgain } = show(`${ROUTE}?at=3`);
  await screen.findByText("The log of the thread has no answer.");
  const answered = { type: "answered", interrupt: "q1", task: "t1", run: "r2" } as const;
  events = log(...asking, { ...answered, answer: { bytes: 5, value: "Yes" } });
  await act(readAgain);
  const answer = await screen.findByRole("region", { name: "Answer" });
  expect(answer.textContent).toContain("Yes");
  const searched = pages.filter((search) => search.get("types") === "answered");
  expect(searched.map((search) => search.get("after"))).toEqual(["3", "4"]);
});

test("a run and its call show what they cost", async () => {
  const tokens = { input: 12, output: 3 };
  const completion = { function: "llm.complete", tokens, cost: 0.000_36 };
  events = log(runStarted(), taskStarted("t1"), called("t1", 0, completion), runEnded());
  show(`${ROUTE}?at=3`);
  await screen.findByText("Cost: 0.00036");
  const panel = await screen.findByRole("complementary", { name: "llm.complete" });
  expect(panel.textContent).toContain("Cost0.00036");
});

test("the panel of a task sums the times, tokens and costs in it", async () => {
  const tokens = { input: 12, output: 3 };
  const completion = { function: "llm.complete", tokens, cost: 0.25, started_ms: 1_000_030 };
  const calls = [called("t1", 0, completion), called("t1", 1, completion)];
  events = log(runStarted(), taskStarted("t1"), ...calls, taskFinished("t1"), runEnded());
  show(`${ROUTE}?at=5`);
  const panel = await screen.findByRole("complementary", { name: "node-t1" });
  for (const fact of ["Time in guests45", "Time in host calls5", "Tokens24 in, 6 out", "Cost0.5"]) {
    expect(panel.textContent).toContain(fact);
  }
});

test("text of a model appears as it is streamed, also after the stream was cut", async () => {
  events = log(runStarted(), taskStarted("t1"), callStarted("t1", 0));
  show(`${ROUTE}?at=3`);
  await waitFor(() => expect(opened.length).toBe(1));
  expect(opened[0]?.url.searchParams.get("after")).toBe("3");
  await screen.findByText("Live");
  opened[0]?.send(...logFrom(4, streamed("t1", 0, text("Wattles "))));
  const streaming = await screen.findByRole("group", { name: "Streamed text" });
  await waitFor(() => expect(streaming.textContent).toBe("Wattles "));
  opened[0]?.cut();
  await screen.findByText(/Reconnecting/);
  await waitFor(() => expect(opened.length).toBe(2), { timeout: 5_000 });
  // The host begins with an event that the view has already.
  opened[1]?.send(
    ...logFrom(4, streamed("t1", 0, text("Wattles ")), streamed("t1", 0, text("are trees"))),
  );
  await waitFor(() => expect(streaming.textContent).toBe("Wattles are trees"));
  opened[1]?.send(
    ...logFrom(6, called("t1", 0, { function: "llm.complete" }), taskFinished("t1"), runEnded()),
  );
  await screen.findByText("completed");
  expect(screen.getAllByRole("link", { name: "llm.complete" }).length).toBe(1);
});

test("a log that a starting host cannot read yet is streamed", async () => {
  refusal = problem(503, "the host is starting");
  show(ROUTE);
  await waitFor(() => expect(opened.length).toBe(1));
  expect(opened[0]?.url.searchParams.get("after")).toBe("0");
  opened[0]?.send(...log(runStarted(), taskStarted("t1"), taskFinished("t1"), runEnded()));
  await screen.findByText("completed");
  await link("node-t1");
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a past run that failed is saved as a case, unless another run was before it", async () => {
  const failure = { code: "unavailable", message: "gone" };
  const input = checkpointed(0, { source: "input" });
  events = log(runStarted(), input, runEnded("failed", { failure }));
  details = { 1: { context: { language: "en" } } };
  checkpoint = { changed: ["messages"], state: { messages: ["hi"], other: 1 } };
  const saved: Blob[] = [];
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    saved.push(blob as Blob);
    return "blob:x";
  });
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockReturnValue();
  show(ROUTE);
  fireEvent.click(await screen.findByRole("button", { name: "Save as a case…" }));
  fireEvent.change(await screen.findByLabelText("Name"), { target: { value: "past" } });
  fireEvent.click(screen.getByRole("button", { name: "Save the case" }));
  await waitFor(() => expect(saved.length).toBe(1));
  expect(JSON.parse((await saved[0]?.text()) ?? "")).toEqual({
    name: "past",
    graph: "chat",
    input: { messages: ["hi"] },
    context: { language: "en" },
    // The thread has gone on, so its state is not that of the run.
    expect: { "/status": "failed", "/failure/code": "unavailable" },
  });
  cleanup();
  events = logFrom(4, runStarted(), input, runEnded("failed", { failure }));
  show(ROUTE);
  await screen.findByText("failed");
  expect(screen.queryByRole("button", { name: "Save as a case…" })).toBeNull();
});

test("a case is made of the thread as the run left it, not as it was read before", async () => {
  events = log(runStarted(), checkpointed(0, { source: "input" }), runEnded("interrupted"));
  checkpoint = { changed: [], state: {} };
  const asked = (id: string) => [{ id, node: "ask", asked_ms: 0, payload: `payload ${id}` }];
  thread = { run: RUN, interrupts: asked("q1") };
  show(ROUTE);
  await screen.findByRole("link", { name: "Answer the pending interrupt" });
  let answer = (_: object) => {};
  thread = new Promise<object>((resolve) => {
    answer = resolve;
  });
  fireEvent.click(screen.getByRole("button", { name: "Save as a case…" }));
  // The first event is read in full, and the thread takes longer.
  await waitFor(() => expect(pages.some((search) => !search.has("outline"))).toBe(true));
  answer({ run: RUN, interrupts: asked("q2") });
  const form = await screen.findByRole("form", { name: "Save as a case" });
  const expected = within(form).getByLabelText<HTMLTextAreaElement>("What is expected where");
  expect(JSON.parse(expected.value)).toEqual({
    "/status": "interrupted",
    "/interrupt": "payload q2",
  });
});

test("a case of a past run has its end state, not that of a later edit", async () => {
  const input = checkpointed(0, { source: "input" });
  events = log(runStarted(), input, checkpointed(6), runEnded("completed"));
  checkpoint = { changed: [], state: {} };
  state = { reply: "of the run" };
  thread = { run: RUN, state: { reply: "edited" } };
  show(ROUTE);
  fireEvent.click(await screen.findByRole("button", { name: "Save as a case…" }));
  const form = await screen.findByRole("form", { name: "Save as a case" });
  const expected = within(form).getByLabelText<HTMLTextAreaElement>("What is expected where");
  expect(JSON.parse(expected.value)).toEqual({
    "/status": "completed",
    "/state/reply": "of the run",
  });
});

test("an address leads to the closed rows and to the selected one", async () => {
  events = log(
    runStarted(),
    taskStarted("t1"),
    called("t1", 0),
    taskFailed("t1"),
    taskStarted("t1", 0, 2),
    taskFinished("t1"),
    taskStarted("t2"),
    called("t2", 0, { function: "llm.complete" }),
    taskFinished("t2"),
    runEnded(),
  );
  const { history } = show(ROUTE);
  fireEvent.click(await screen.findByRole("button", { name: "Close node-t2" }));
  expect(screen.queryByRole("link", { name: "llm.complete" })).toBeNull();
  // The row of the task and that of its last attempt show the same event.
  fireEvent.click(await link("node-t1"));
  await screen.findByRole("complementary", { name: "node-t1" });
  const { href } = history.location;
  expect(href).toBe(`${ROUTE}?closed=6&row=1&at=6`);
  cleanup();
  show(href);
  await screen.findByRole("complementary", { name: "node-t1" });
  expect(screen.getByRole("button", { name: "Open node-t2" })).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Close all" }));
  fireEvent.click(screen.getByRole("button", { name: "Open Superstep 0" }));
  expect(screen.getByRole("button", { name: "Open node-t1" })).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Open all" }));
  await link("llm.complete");
  fireEvent.click(screen.getByRole("button", { name: "Close" }));
  await waitFor(() => expect(screen.queryByRole("complementary")).toBeNull());
  expect(document.activeElement?.textContent).toBe("node-t1");
});

test("the log of the thread can be verified beside that of the run", async () => {
  events = log(runStarted(), runEnded());
  seals = { seal: "5ea1", sealed_after: 0, last_seq: 2 };
  show(`${ROUTE}?view=log&tenant=acme`);
  fireEvent.click(await screen.findByText(/^Export or verify the log/));
  expect(screen.getByRole("button", { name: "Export the thread" })).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Verify the log" }));
  await screen.findByText(/^All seals fit/);
  await screen.findByText("5ea1");
});

test("rows can be closed and opened", async () => {
  events = log(runStarted(), taskStarted("t1"), called("t1", 0), taskFinished("t1"), runEnded());
  show(ROUTE);
  await link("http.send");
  fireEvent.click(screen.getByRole("button", { name: "Close node-t1" }));
  expect(screen.queryByRole("link", { name: "http.send" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Open all" }));
  await link("http.send");
  fireEvent.click(screen.getByRole("button", { name: "Close all" }));
  expect(screen.queryByRole("link", { name: "node-t1" })).toBeNull();
});

test("the requests name the tenant of the address", async () => {
  noteTenantHeader("x-tenant");
  events = log(runStarted(), runEnded());
  show(`${ROUTE}?tenant=acme`);
  await screen.findByText("completed");
  expect(tenants).toContain("acme");
  const back = screen.getByRole("link", { name: "Thread t1" });
  expect(back.getAttribute("href")).toBe("/threads/t1?tenant=acme");
});

test("a run that is not there says so", async () => {
  show(`/threads/t2/runs/${RUN}`);
  await screen.findByText(/no such run, or it belongs/);
  expect(opened).toEqual([]);
});
