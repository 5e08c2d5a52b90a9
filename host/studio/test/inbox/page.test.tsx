// The inbox, as a user sees it.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { InboxItem } from "../../src/inbox/item.ts";
import { accessOf, problem } from "../host.ts";
import { show } from "../show.tsx";

/** Height of the list. Without a layout it would have room for no row. */
const HEIGHT_PX = 600;

interface Sent {
  path: string;
  tenant: string | null;
  body: unknown;
}

let open: InboxItem[];
let apps: object[];
/** How many interrupts the host counts. */
let count: object;
let counted: URLSearchParams[];
let sent: Sent[];
let asked: URLSearchParams[];
/** The tenants that requests for names of keys named. */
let named: (string | null)[];
/** What the host responds to an answer, in place of taking it. */
let refusal: (() => Response) | undefined;
/** What the host waits for before it takes an answer. */
let held: Promise<void> | undefined;
/** The event of an answer that somebody else gave. */
let event: object | undefined;

beforeEach(() => {
  open = [];
  apps = [];
  count = { total: 0, is_complete: true };
  counted = [];
  sent = [];
  asked = [];
  named = [];
  refusal = undefined;
  held = undefined;
  event = undefined;
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async (request: Request) => respond(request));
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

async function respond(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const path = pathname.replace("/api/v1", "");
  if (path === "/apps") return Response.json(apps);
  if (path === "/key-names") {
    named.push(request.headers.get("x-tenant"));
    return Response.json([{ id: "k1", name: "Night shift" }]);
  }
  if (path === "/interrupt-counts") {
    counted.push(searchParams);
    return Response.json(count);
  }
  if (path === "/interrupts") {
    asked.push(searchParams);
    return Response.json(pageOf(searchParams));
  }
  const [, thread = "", last = ""] = /^\/threads\/([^/]+)\/?(.*)$/.exec(path) ?? [];
  if (last === "resume") return take(thread, request);
  if (last === "runs") return Response.json([{ run: "r2" }, { run: "r1" }]);
  if (last === "log") {
    const isOfRun = searchParams.get("run") === "r1";
    return Response.json({ items: isOfRun && event ? [event] : [], last_seq: 9 });
  }
  if (thread === "") return Response.json(accessOf({}));
  const interrupts = open.filter((it) => it.thread_id === thread).map((it) => it.interrupt);
  return Response.json({ thread_id: thread, app: "a", graph: "g", updated_ms: 1, interrupts });
}

/** Returns the page that a request asks for. The cursor is the number of items before it. */
function pageOf(search: URLSearchParams) {
  const cursor = Number(search.get("cursor"));
  const end = cursor + Number(search.get("limit"));
  const items = open.slice(cursor, end);
  return end < open.length ? { items, next_cursor: `${end}` } : { items };
}

async function take(thread: string, request: Request): Promise<Response> {
  const tenant = request.headers.get("x-tenant");
  sent.push({ path: thread, tenant, body: await request.json() });
  await held;
  const refused = refusal?.();
  if (refused !== undefined) return refused;
  open = open.filter((it) => it.thread_id !== thread);
  return Response.json({ run: "r9", status: "running" }, { status: 202 });
}

function itemOf(thread: string, payload: unknown, response_schema: unknown, more = {}): InboxItem {
  const interrupt = { id: `${thread}-i`, node: "ask", payload, response_schema, asked_ms: 1 };
  return { thread, thread_id: thread, app: "a", graph: "g", updated_ms: 1, interrupt, ...more };
}

function press(key: string, more: object = {}): void {
  fireEvent.keyDown(document.activeElement ?? document.body, { key, ...more });
}

const row = (name: RegExp) => screen.findByRole("link", { name });

const heading = (name: string) => screen.findByRole("heading", { name });

const BOOLEAN = { type: "boolean" };

test("questions are worked off by keys, each with one answer", async () => {
  open = ["one", "two", "three"].map((name) => itemOf(name, { question: `${name}?` }, BOOLEAN));
  const { history } = show("/inbox");
  await row(/one\?/);
  press("j");
  await heading("one?");
  press("j");
  await heading("two?");
  expect(history.location.search).toContain("thread=two");
  press("a");
  // The key is held down: it answers nothing else.
  press("a", { repeat: true });
  await heading("three?");
  press("a", { repeat: true });
  press("k");
  await heading("one?");
  press("r");
  await heading("three?");
  press("a");
  await screen.findByText("No question is pending.");
  expect(sent.map(({ path, body }) => [path, body])).toEqual([
    ["two", { answers: { "two-i": true } }],
    ["one", { answers: { "one-i": false } }],
    ["three", { answers: { "three-i": true } }],
  ]);
});

test("a user who goes on before an answer is taken stays where they are", async () => {
  open = ["one", "two", "three"].map((name) => itemOf(name, { question: `${name}?` }, BOOLEAN));
  let release: () => void = () => undefined;
  held = new Promise((resolve) => {
    release = resolve;
  });
  const { history } = show("/inbox");
  await row(/one\?/);
  press("j");
  await heading("one?");
  press("a");
  await waitFor(() => expect(sent).toHaveLength(1));
  press("j");
  await heading("two?");
  press("j");
  await heading("three?");
  release();
  await waitFor(() => expect(screen.queryByRole("link", { name: /one\?/ })).toBeNull());
  await heading("three?");
  expect(history.location.search).toContain("thread=three");
});

test("an answer that needs more gets the focus, and is sent from the field", async () => {
  const message = { type: "string", minLength: 3 };
  const reject = { properties: { decision: { const: "reject" }, message }, required: ["decision"] };
  const approve = { properties: { decision: { const: "approve" } }, required: ["decision"] };
  const oneOf = [approve, reject].map((it) => ({ type: "object", ...it }));
  open = [itemOf("one", { tool: "rm", kind: "tool_approval" }, { oneOf })];
  show("/inbox");
  await row(/rm/);
  press("j");
  await heading("rm");
  await waitFor(() => expect(document.activeElement?.tagName).toBe("A"));
  press("Enter");
  const first = screen.getByLabelText("approve");
  expect(document.activeElement).toBe(first);
  fireEvent.keyDown(first, { key: "Escape" });
  press("r");
  const field = await screen.findByLabelText("message (optional)");
  await waitFor(() => expect(document.activeElement).toBe(field));
  fireEvent.change(field, { target: { value: "no" } });
  press("Enter", { ctrlKey: true });
  await screen.findByText(/too short/);
  expect(sent).toEqual([]);
  fireEvent.change(field, { target: { value: "not now" } });
  press("Enter", { ctrlKey: true });
  await screen.findByText("No question is pending.");
  const answer = { decision: "reject", message: "not now" };
  expect(sent[0]?.body).toEqual({ answers: { "one-i": answer } });
});

test("who is too late is told who answered, and what", async () => {
  open = [itemOf("one", "First?", BOOLEAN), itemOf("two", "Second?", BOOLEAN)];
  show("/inbox");
  await row(/First/);
  press("j");
  await heading("First?");
  refusal = () => {
    open = open.slice(1);
    return problem(409, "the interrupt is not pending");
  };
  event = {
    type: "answered",
    interrupt: "one-i",
    at_ms: 5,
    principal: { key: "k1", user: "jane\u202e" },
    answer: { bytes: 5, value: false },
  };
  press("a");
  await screen.findByText("User jane[U+202E] has answered this question.");
  expect(screen.getByRole("group", { name: "The answer" }).textContent).toBe("false");
  fireEvent.click(screen.getByRole("button", { name: "Go to the next question" }));
  await heading("Second?");
});

test("an operator who is too late is told the name of the key of any tenant", async () => {
  noteTenantHeader("x-tenant");
  event = {
    type: "answered",
    interrupt: "one-i",
    at_ms: 5,
    principal: { key: "k1", tenant: "acme" },
    answer: { bytes: 4, value: true },
  };
  const access = { is_operator: true, tenant_header: "x-tenant" };
  show("/inbox?thread=one&interrupt=one-i&of=acme", access);
  await screen.findByText("The key Night shift (k1) has answered this question.");
  expect(named).toEqual([null]);
});

test("a question that disappears while it is open is not replaced by another one", async () => {
  open = [itemOf("one", "First?", BOOLEAN), itemOf("two", "Second?", BOOLEAN)];
  event = { type: "answered", interrupt: "one-i", at_ms: 5, answer: { bytes: 9_999 } };
  show("/inbox?thread=one&interrupt=one-i");
  await heading("First?");
  open = open.slice(1);
  // A tab that becomes visible reads the list again.
  fireEvent(window, new Event("visibilitychange"));
  await screen.findByText(/Somebody without a key has answered/);
  screen.getByText(/9,999 bytes/);
  press("a");
  expect(sent).toEqual([]);
});

test("a conflict for another reason keeps the question and what was entered", async () => {
  open = [itemOf("one", "Name?", { type: "string" })];
  show("/inbox?thread=one&interrupt=one-i");
  await heading("Name?");
  const field = screen.getByLabelText("Answer") as HTMLTextAreaElement;
  fireEvent.change(field, { target: { value: "Jane" } });
  refusal = () => problem(409, "the thread is busy");
  fireEvent.click(screen.getByRole("button", { name: "Send" }));
  await screen.findByText("The answer was not taken: the thread is busy");
  expect(field.value).toBe("Jane");
});

test("a key that can only read has no form", async () => {
  open = [itemOf("one", "First?", BOOLEAN)];
  show("/inbox?thread=one&interrupt=one-i", { scope: "read" });
  await screen.findByText(/may read questions/);
  expect(screen.queryByRole("button", { name: /Approve/ })).toBeNull();
  press("a");
  expect(sent).toEqual([]);
});

test("the operator sees all tenants, and answers for the tenant of the thread", async () => {
  noteTenantHeader("x-tenant");
  open = [itemOf("one", "First?", BOOLEAN, { tenant: "acme" })];
  const { history } = show("/inbox", { is_operator: true, tenant_header: "x-tenant" });
  await row(/First/);
  expect(asked[0]?.get("tenant")).toBe("*");
  press("j");
  await heading("First?");
  expect(history.location.search).toContain("of=acme");
  press("a");
  await screen.findByText("No question is pending.");
  expect(sent[0]?.tenant).toBe("acme");
});

test("payloads are text, in which everything can be seen", async () => {
  const payload = { question: "<img src=x>\u202egnp", more: "\u202e" };
  open = [itemOf("one", payload, undefined)];
  show("/inbox?thread=one&interrupt=one-i");
  await heading("<img src=x>[U+202E]gnp");
  const shown = screen.getByRole("group", { name: "What the plugin sent" }).textContent;
  expect(shown).toContain('"more": "[U+202E]"');
  expect(document.querySelector("img")).toBeNull();
  // Without a schema, the answer is a text or any JSON.
  fireEvent.click(screen.getByRole("radio", { name: "Text" }));
  fireEvent.change(screen.getByRole("textbox", { name: "Text" }), { target: { value: "blue" } });
  fireEvent.click(screen.getByRole("button", { name: "Send" }));
  await screen.findByText("No question is pending.");
  expect(sent[0]?.body).toEqual({ answers: { "one-i": "blue" } });
});

test("the questions on pages that were not read are counted, too", async () => {
  open = Array.from({ length: 120 }, (_, at) =>
    itemOf(`t${at}`, `${at}?`, BOOLEAN, { updated_ms: 1_000 - at }),
  );
  count = { total: 120, is_complete: true };
  show("/inbox?graph=g");
  await screen.findByText("120 pending");
  expect(counted[0]?.get("graph")).toBe("g");
  press("j");
  await heading("0?");
  press("a");
  await screen.findByText("119 pending");
  screen.getByText("Answered. 119 left.");
});

test("a number that the host has not counted to the end is the least one", async () => {
  open = Array.from({ length: 60 }, (_, at) => itemOf(`t${at}`, `${at}?`, BOOLEAN));
  count = { total: 500, is_complete: false };
  show("/inbox");
  await screen.findByText("500 or more pending");
});

test("a list without further pages needs no count", async () => {
  open = [itemOf("one", "First?", BOOLEAN)];
  show("/inbox");
  await screen.findByText("1 pending");
  expect(counted).toEqual([]);
});

test("a graph is chosen, and stays chosen with the selected question", async () => {
  apps = [{ name: "a", graphs: ["g", "h"] }];
  open = [itemOf("one", "First?", BOOLEAN)];
  const { history } = show("/inbox");
  await row(/First/);
  await screen.findByRole("option", { name: "h" });
  fireEvent.change(screen.getByLabelText("Graph"), { target: { value: "g" } });
  await waitFor(() => expect(asked.at(-1)?.get("graph")).toBe("g"));
  await row(/First/);
  press("j");
  await heading("First?");
  expect(history.location.search).toContain("graph=g");
  expect(history.location.search).toContain("thread=one");
});
