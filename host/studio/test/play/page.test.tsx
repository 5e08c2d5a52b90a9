// The playground, as a user sees it.
import { act, cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { EventOutline } from "../../src/api/log.ts";
import { accessOf, problem, threadOf } from "../host.ts";
import {
  called,
  callStarted,
  log,
  RUN,
  runEnded,
  runStarted,
  streamed,
  taskStarted,
  text,
} from "../run/log.ts";
import { type OpenedStream, serveStreams } from "../run/streams.ts";
import { show } from "../show.tsx";

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

const DENIED =
  'plugin `tools` may not call the tool `spin`; add `tools = ["tools/spin"]` under ' +
  "`[grants.tools]` in wattle.toml";

const TOOLS = [
  {
    tool: "tools/nested",
    plugin: "tools",
    name: "nested",
    description: HOSTILE,
    input_schema: {
      type: "object",
      properties: { count: { type: "integer" } },
      required: ["count"],
    },
    accepts_invalid: false,
    read_only: true,
    idempotent: false,
  },
];

const GRAPH = {
  app: "notes",
  name: "main",
  version: "v1",
  mermaid: "",
  definition: {
    entry: ["ask"],
    channels: { messages: { reducer: "messages" }, count: { schema: { type: "integer" } } },
    nodes: { ask: {} },
  },
  nodes: {
    ask: {
      plugin: "p",
      function: "ask",
      doc: "Asks",
      input_schema: {
        type: "object",
        properties: { text: { type: "string" } },
        required: ["text"],
      },
    },
  },
};

interface Sent {
  path: string;
  tenant: string | null;
  body: unknown;
}

let sent: Sent[];
let events: EventOutline[];
let graph: object;
let opened: OpenedStream[];
let thread: object;
let end: object;
let saved: { name: string; blob: Blob }[];

beforeEach(() => {
  [sent, events, saved] = [[], [], []];
  graph = GRAPH;
  thread = { ...threadOf("t1", 1), state: { count: 2 }, next: [], interrupts: [], version: "v1" };
  end = { duration_us: 1_500, calls: [], omitted_calls: 0, output: { content: [] } };
  opened = serveStreams(respond);
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    saved.push({ name: "", blob: blob as Blob });
    return "blob:x";
  });
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (
    this: HTMLAnchorElement,
  ) {
    const last = saved.at(-1);
    if (last !== undefined) last.name = this.download;
  });
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      disconnect() {}
    },
  );
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
});

async function respond(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const path = pathname.replace("/api/v1", "");
  if (request.method === "POST") {
    const tenant = request.headers.get("x-tenant");
    sent.push({ path, tenant, body: await request.json().catch(() => null) });
    if (path.endsWith("/runs")) {
      const run = { run: RUN, thread: "t1", thread_id: "t1", status: "running" };
      return Response.json(run, { status: 202 });
    }
    return Response.json(end);
  }
  if (path === "/apps") return Response.json([{ name: "notes", graphs: ["main"] }]);
  if (path === "/apps/notes/tools") return Response.json(TOOLS);
  if (path === "/apps/notes/graphs/main") return Response.json(graph);
  if (path === "/threads/t1/log") return Response.json({ items: events, last_seq: events.length });
  if (path === "/threads/t1/test") return new Response("{}\n");
  if (path === "/threads/t1") return Response.json(thread);
  if (path.startsWith("/apps/")) return problem(404, "no such app");
  return Response.json(accessOf({}));
}

const button = (name: string) => screen.findByRole("button", { name });

const enter = async (label: string, value: string) =>
  fireEvent.change(await screen.findByLabelText(label), { target: { value } });

const result = () => screen.findByRole("region", { name: "Result" });

test("a tool is called alone, and a denied call names the line to add", async () => {
  const failure = { code: "denied", message: DENIED };
  const calls = [
    { depth: 0, function: "tools.call", summary: "spin", duration_us: 7, failure },
    { depth: 1, function: "http.send", summary: HOSTILE },
  ];
  const output = { content: [{ text: HOSTILE }], structured: { sum: 3 } };
  end = { ...end, calls, output };
  show("/apps/notes/play?tool=tools%2Fnested");
  fireEvent.click(await button("Call the tool"));
  await screen.findByText("Enter a value.");
  expect(sent).toEqual([]);
  await enter("count", "4");
  fireEvent.click(await button("Call the tool"));
  const shown = await result();
  const path = "/apps/notes/tools/tools%2Fnested/call";
  expect(sent).toEqual([{ path, tenant: null, body: { input: { count: 4 } } }]);
  within(shown).getByText('# wattle.toml\n[grants.tools]\ntools = ["tools/spin"]', {
    normalizer: String,
  });
  within(shown).getByText("Duration: 1.50 ms");
  within(shown).getByText("not ended");
  within(shown).getByText("inside of a tool call");
  expect(within(shown).getByRole("group", { name: "Data" }).textContent).toContain("3");
  expect(shown.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(document.querySelector("img")).toBeNull();
});

test("a tool that the app does not have is named, and another one can be chosen", async () => {
  const { history } = show("/apps/notes/play?tool=tools%2Fgone");
  await screen.findByText("The app has no such tool.");
  const field = screen.getByLabelText("What is tried");
  expect(field).toHaveProperty("value", "tool:tools/gone");
  fireEvent.change(field, { target: { value: "graph:main" } });
  await waitFor(() => expect(history.location.search).toBe("?graph=main"));
});

test("an app that is gone is named while its tools can still be read", async () => {
  const { readAgain } = show("/apps/notes/play?tool=tools%2Fnested");
  await screen.findByLabelText("count");
  vi.stubGlobal("fetch", (request: Request) => {
    const isList = new URL(request.url).pathname.endsWith("/apps");
    return isList ? Promise.resolve(Response.json([])) : respond(request);
  });
  await act(readAgain);
  await screen.findByText("The host has no such app.");
  expect(screen.queryByLabelText("count")).toBeNull();
});

test("what was entered stays while the host cannot be read", async () => {
  const { readAgain } = show("/apps/notes/play?tool=tools%2Fnested");
  await enter("count", "4");
  vi.stubGlobal("fetch", async () => problem(500, "no store"));
  await act(readAgain);
  await screen.findByText("no store");
  expect((screen.getByLabelText("count") as HTMLInputElement).value).toBe("4");
});

test("a tool that fails shows its failure, and one that is stopped shows that", async () => {
  end = {
    duration_us: 1,
    calls: [],
    omitted_calls: 3,
    failure: { code: "limit", message: "too much" },
  };
  show("/apps/notes/play?tool=tools%2Fnested");
  await enter("count", "4");
  fireEvent.click(await button("Call the tool"));
  const shown = await result();
  expect(within(shown).getByRole("alert").textContent).toContain("limit: too much");
  within(shown).getByText("3 more host calls are not listed.");
  vi.stubGlobal("fetch", (request: Request) => {
    if (request.method !== "POST") return respond(request);
    return new Promise((_, reject) => {
      request.signal.addEventListener("abort", () => reject(new DOMException("x", "AbortError")));
    });
  });
  fireEvent.click(await button("Call the tool"));
  fireEvent.click(await button("Stop"));
  await screen.findByText("The call was stopped.");
});

test("the operator names the tenant, in the body of a tool call and in the header of a run", async () => {
  noteTenantHeader("x-tenant");
  const access = { is_operator: true, tenant_header: "x-tenant" };
  const { history } = show("/apps/notes/play?tool=tools%2Fnested", access);
  await enter("Tenant", "acme");
  fireEvent.blur(screen.getByLabelText("Tenant"));
  await waitFor(() => expect(history.location.search).toContain("tenant=acme"));
  await enter("count", "4");
  fireEvent.click(await button("Call the tool"));
  await result();
  await enter("What is tried", "graph:main");
  fireEvent.click(await screen.findByLabelText("Form"));
  fireEvent.click(await button("Run the graph"));
  await result();
  const [call, run] = sent;
  expect(call).toMatchObject({ tenant: null, body: { input: { count: 4 }, tenant: "acme" } });
  expect(run).toMatchObject({ path: "/apps/notes/runs", tenant: "acme" });
});

test("a key that may only read gets no form", async () => {
  show("/apps/notes/play", { scope: "read" });
  await screen.findByText("This key may not start runs and call tools.");
  expect(screen.queryByRole("button", { name: /Run|Call/ })).toBeNull();
});

test("a node runs alone, with its calls and the state that it left", async () => {
  events = log(
    runStarted(),
    taskStarted("t1"),
    called("t1", 0, { ok: false, failure: { code: "denied", message: DENIED } }),
    runEnded("interrupted"),
  );
  thread = { ...thread, status: "interrupted", next: ["next one"] };
  const { history } = show("/apps/notes/play");
  await enter("Part of the graph", "ask");
  await waitFor(() => expect(history.location.search).toBe("?graph=main&node=ask"));
  await enter("text", "hello");
  fireEvent.click(await button("Run this node alone"));
  const shown = await result();
  await within(shown).findByText("The run stopped before next one.");
  const goto = [{ node: "ask", input: { text: "hello" } }];
  const body = { graph: "main", input: {}, goto, options: { interrupt_after: "*" } };
  expect(sent).toEqual([{ path: "/apps/notes/runs", tenant: null, body }]);
  expect(within(shown).getByRole("group", { name: "State" }).textContent).toContain("2");
  within(shown).getByText('# wattle.toml\n[grants.tools]\ntools = ["tools/spin"]', {
    normalizer: String,
  });
  const call = within(shown).getByRole("link", { name: "http.send" });
  expect(call.getAttribute("href")).toContain(`/threads/t1/runs/${RUN}?at=3`);
});

test("a run is saved as a case, and its thread as a test", async () => {
  events = log(runStarted(), runEnded());
  show("/apps/notes/play?graph=main");
  fireEvent.click(await screen.findByLabelText("Form"));
  await enter("count (optional)", "1");
  fireEvent.click(await button("Run the graph"));
  fireEvent.click(await button("Save as a case…"));
  fireEvent.click(await button("Save the case"));
  await screen.findByText("Use the letters a to z, digits and -.");
  expect(saved).toEqual([]);
  await enter("Name", "two");
  fireEvent.click(await button("Save the case"));
  expect(saved[0]?.name).toBe("two.jsonl");
  expect(JSON.parse((await saved[0]?.blob.text()) ?? "")).toEqual({
    name: "two",
    graph: "main",
    input: { count: 1 },
    expect: { "/status": "completed", "/state/count": 2 },
  });
  fireEvent.click(await button("Save the thread as a test"));
  await waitFor(() => expect(saved[1]?.name).toBe("thread-t1.thread"));
});

test("a run gets a context that fits the schema of the graph, and so does its case", async () => {
  const properties = { language: { type: "string" } };
  const context_schema = { type: "object", properties, required: ["language"] };
  graph = { ...GRAPH, definition: { ...GRAPH.definition, context_schema } };
  events = log(runStarted(), runEnded());
  show("/apps/notes/play?graph=main");
  fireEvent.click(await screen.findByLabelText("Form"));
  fireEvent.click(screen.getByRole("checkbox", { name: /Start runs with a context/ }));
  fireEvent.click(await button("Run the graph"));
  await screen.findByText("Enter a value.");
  expect(sent).toEqual([]);
  await enter("language", "en");
  fireEvent.click(await button("Run the graph"));
  fireEvent.click(await button("Save as a case…"));
  const context = { language: "en" };
  expect(sent.map(({ body }) => body)).toEqual([{ graph: "main", input: {}, context }]);
  await enter("Name", "english");
  fireEvent.click(await button("Save the case"));
  expect(JSON.parse((await saved[0]?.blob.text()) ?? "")).toMatchObject({ input: {}, context });
});

test("a message is not sent with a context that is not valid, and stays in its field", async () => {
  show("/apps/notes/play?graph=main");
  const field = await screen.findByLabelText("Message");
  fireEvent.click(screen.getByRole("checkbox", { name: /Start runs with a context/ }));
  await enter("Context (JSON)", "{");
  fireEvent.change(field, { target: { value: "hi" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await screen.findByText(/This is not JSON/);
  await waitFor(() => expect(field).toHaveProperty("value", "hi"));
  expect(sent).toEqual([]);
  await enter("Context (JSON)", '{"language":"en"}');
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() => expect(sent).toHaveLength(1));
  const input = { messages: [{ role: "user", content: "hi" }] };
  expect(sent[0]?.body).toEqual({ graph: "main", input, context: { language: "en" } });
});

test("a graph with messages is a conversation, whose model is read as it writes", async () => {
  show("/apps/notes/play?graph=main");
  const field = await screen.findByLabelText("Message");
  fireEvent.change(field, { target: { value: "hi" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() => expect(opened).toHaveLength(1));
  const input = { messages: [{ role: "user", content: "hi" }] };
  expect(sent[0]?.body).toEqual({ graph: "main", input });
  opened[0]?.send(
    ...log(runStarted(), taskStarted("t1"), callStarted("t1", 0), streamed("t1", 0, text("hel"))),
  );
  const live = await screen.findByRole("group", { name: "What a model writes now" });
  expect(live.textContent).toBe("hel");
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: HOSTILE },
  ];
  thread = { ...thread, state: { messages } };
  opened[0]?.send(
    ...log(runStarted(), runStarted(), runStarted(), runStarted(), runEnded()).slice(4),
  );
  await screen.findByText("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(document.querySelector("img")).toBeNull();
  expect(screen.getAllByText("hi")).toHaveLength(1);
  await button("Save as a case…");
  fireEvent.change(field, { target: { value: "more" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]?.body).toMatchObject({ thread_id: "t1" });
});

test("a conversation ends only after its message was sent", async () => {
  show("/apps/notes/play?graph=main");
  const field = await screen.findByLabelText("Message");
  fireEvent.change(field, { target: { value: "hi" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() => expect(opened).toHaveLength(1));
  opened[0]?.send(...log(runStarted(), runEnded()));
  await button("Save as a case…");
  const again = await button("New conversation");
  expect(again).toHaveProperty("disabled", false);
  const { fetch } = globalThis;
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  vi.stubGlobal("fetch", async (request: Request) => {
    if (request.method === "POST") await arrived;
    return fetch(request);
  });
  fireEvent.change(field, { target: { value: "more" } });
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() => expect(again).toHaveProperty("disabled", true));
  arrive();
  await waitFor(() => expect(again).toHaveProperty("disabled", false));
  expect(sent[1]?.body).toMatchObject({ thread_id: "t1" });
});
