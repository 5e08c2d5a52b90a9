// Plugins and models, as the operator sees them.
import { act, cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Access } from "../../src/access/scope.ts";
import { permissionsOf } from "../../src/plugins/grants.ts";
import type { Plugin } from "../../src/plugins/read.ts";
import { problem } from "../host.ts";
import { show } from "../show.tsx";

/** Height of the table. Without a layout it would have room for no row. */
const HEIGHT_PX = 440;

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

const NOTHING: Plugin["grants"] = { llm: [], http: [], sql: {}, limits: {} };

const LINE = 'http = [{ host = "example.com", methods = ["GET"] }]';

function pluginOf(name: string, values: Partial<Plugin> = {}): Plugin {
  return {
    name,
    digest: "ab".repeat(32),
    size_bytes: 2_048,
    contract: "0.1.0",
    exports: ["wattle:plugin/node"],
    imports: ["wattle:plugin/llm"],
    nodes: [{ name: "greet", doc: HOSTILE, input_schema: { type: "object" }, output_schema: {} }],
    tools: [],
    tool_schemas: [],
    reducers: [],
    routes: [],
    grants: NOTHING,
    needs: NOTHING,
    missing: [],
    notes: [],
    use: { calls: 0, failed: 0, denied: 0, cpu_ms: 0, memory_peak_bytes: 0 },
    ...values,
  };
}

const GREETER = pluginOf("greeter", {
  app: "notes",
  needs: {
    ...NOTHING,
    llm: ["chat"],
    http: [{ host: "example.com", scheme: "https", port: null, methods: ["GET"], secrets: [] }],
  },
  grants: { ...NOTHING, llm: ["chat"], sql: { own: "read-write", sales: { access: "read-only" } } },
  missing: [
    { need: "http", line: LINE, table: "grants.greeter" },
    { need: "in_doubt", line: 'in_doubt = "retry"', table: "grants.greeter" },
  ],
  use: { calls: 1_200, failed: 3, denied: 2, cpu_ms: 1_500, memory_peak_bytes: 1_572_864 },
});

const HAIL = {
  name: "hail",
  description: HOSTILE,
  input_schema: { type: "object", properties: { whom: { type: "string" } }, required: ["whom"] },
  read_only: true,
  idempotent: false,
};

/** The end of a tool call with a denied host call. */
const DENIED_CALL = {
  output: { content: [] },
  duration_us: 1,
  calls: [
    {
      depth: 0,
      function: "http.send",
      summary: HOSTILE,
      failure: { code: "denied", message: `add \`${LINE}\` under \`[grants.shared]\`` },
    },
  ],
  omitted_calls: 0,
};

const GREET = {
  name: "greet",
  doc: HOSTILE,
  input_schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  output_schema: {},
};

/** The end of a node call with a denied host call. */
const NODE_END = {
  outcome: { writes: [{ channel: "greeting", value: "hello Anna" }] },
  duration_us: 1,
  calls: DENIED_CALL.calls,
  omitted_calls: 0,
  logs: [{ level: "info", message: HOSTILE }],
  omitted_logs: 2,
};

let plugins: Plugin[];
let nodeEnd: object;
let sent: { method: string; path: string; type: string | null; body: string }[];
let refusal: string | undefined;

beforeEach(() => {
  [sent, refusal, nodeEnd] = [[], undefined, NODE_END];
  plugins = [GREETER, pluginOf("greeter", { app: "other" }), pluginOf("shared", { nodes: [] })];
  for (const height of ["clientHeight", "offsetHeight"] as const) {
    vi.spyOn(HTMLElement.prototype, height, "get").mockReturnValue(HEIGHT_PX);
  }
  vi.stubGlobal("fetch", async (request: Request) => {
    const path = new URL(request.url).pathname;
    if (request.method === "GET") return answer(path);
    const { method, headers } = request;
    sent.push({ method, path, type: headers.get("content-type"), body: await request.text() });
    if (path.includes("/nodes/")) return Response.json(nodeEnd);
    if (path.endsWith("/call")) return Response.json(DENIED_CALL);
    if (method === "DELETE") return new Response(null, { status: 204 });
    if (refusal !== undefined) return problem(400, refusal);
    const plugin = pluginOf("shared", { missing: GREETER.missing.slice(0, 1), nodes: [] });
    return Response.json({ plugin, replaces: "cd".repeat(32) });
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function answer(path: string): Response {
  if (path === "/api/v1/models") {
    return Response.json({
      routes: { chat: { models: ["small", HOSTILE] } },
      prices: { small: { input: 0.15, output: 0.6 }, unused: { input: 1, output: 2 } },
    });
  }
  if (path === "/api/v1/plugins") return Response.json(plugins);
  const [, name] = /^\/api\/v1\/plugins\/([^/]+)$/.exec(path) ?? [];
  const found = plugins.filter((plugin) => plugin.name === name);
  return found.length === 0 ? problem(404, "no such plugin") : Response.json(found);
}

const OPERATOR: Partial<Access> = { is_operator: true };

const rowOf = async (table: string, name: string) => {
  const found = within(await screen.findByRole("table", { name: table }));
  return found.getAllByRole("row").find((row) => row.textContent?.includes(name));
};

test("plugins are listed with their exports, missing permissions and use", async () => {
  show("/plugins", OPERATOR);
  const used = await rowOf("Plugins", "notes");
  expect(used?.textContent).toBe("greeternotes1 node2 missing1,200321.50 s1.5 MiB");
  expect((await rowOf("Plugins", "shared"))?.textContent).toBe("sharedno appnone0000 µs0 B");
});

test.each<Partial<Plugin["needs"]>>([
  { environment: ["REGION"] },
  { folders: [{ path: "/srv/reports", guest: "/reports", access: "read-only" }] },
])("a plugin that requests only environment variables or folders is listed: %j", async (kind) => {
  const needs = { ...NOTHING, ...kind };
  plugins = [pluginOf("shared", { nodes: [], needs, grants: needs })];
  show("/plugins", OPERATOR);
  expect((await rowOf("Plugins", "shared"))?.textContent).toBe("sharedno appgranted0000 µs0 B");
});

test("a plugin shows what it requests and the line that grants what is missing", async () => {
  const copied = vi.fn(async () => {});
  vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText: copied } });
  show("/plugins/greeter?app=notes", OPERATOR);
  const row = await rowOf("Permissions", "http");
  expect(row?.textContent).toContain("host example.com; scheme https; methods GET");
  expect(row?.textContent).toContain(`${LINE}in [grants.greeter]`);
  fireEvent.click(await screen.findByRole("button", { name: `Copy ${LINE}` }));
  expect(copied).toHaveBeenCalledWith(`[grants.greeter]\n${LINE}\n`);
  expect((await rowOf("Permissions", "in_doubt"))?.textContent).toContain('"retry"');
  const nodes = within(screen.getByRole("list", { name: "Nodes" }));
  expect(nodes.getByText("<img src=x onerror=alert(1)> [U+202E]gnp")).toBeDefined();
  expect(document.querySelector("img")).toBeNull();
});

test("a denied call shows the line that allows it, and leads to its run", async () => {
  const copied = vi.fn(async () => {});
  vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText: copied } });
  const missing =
    'plugin `greeter` may not use `GET`; add `llm = ["chat"]` under `[grants.greeter]` in wattle.toml';
  const denials = [
    { at_ms: 2, function: "llm.complete", message: missing, thread: "t1", run: "r1" },
    { at_ms: 1, function: "sql.query", message: HOSTILE },
  ];
  plugins = [{ ...GREETER, use: { ...GREETER.use, denials } }];
  show("/plugins/greeter?app=notes", OPERATOR);
  const calls = within(await screen.findByRole("region", { name: "Newest denied calls" }));
  const [first, second] = calls.getAllByRole("listitem");
  expect(first?.textContent).toContain('# wattle.toml\n[grants.greeter]\nllm = ["chat"]');
  const run = calls.getByRole("link", { name: "Run of the call" });
  expect(run.getAttribute("href")).toBe("/threads/t1/runs/r1");
  fireEvent.click(calls.getByRole("button", { name: "Copy" }));
  expect(copied).toHaveBeenCalledWith('# wattle.toml\n[grants.greeter]\nllm = ["chat"]');
  expect(second?.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  expect(document.querySelector("img")).toBeNull();
});

test("the tool of a plugin leads to a playground, in the app that uses it", async () => {
  plugins = [
    { ...GREETER, tools: ["hail"], tool_schemas: [HAIL] },
    pluginOf("shared", { tools: ["hail"], tool_schemas: [HAIL] }),
  ];
  const link = async () => (await screen.findByText("Try in the playground")).getAttribute("href");
  show("/plugins/greeter?app=notes", OPERATOR);
  expect(await link()).toBe("/plugins/greeter/play?app=notes&tool=hail");
  cleanup();
  show("/plugins/shared", OPERATOR);
  expect(await link()).toBe("/plugins/shared/play?tool=hail");
});

test("the tool of a plugin that no app uses is called alone", async () => {
  const quiet = { ...HAIL, name: "quiet", read_only: false };
  plugins = [GREETER, pluginOf("shared", { tool_schemas: [quiet, HAIL] })];
  show("/plugins/shared/play?tool=hail", OPERATOR);
  await screen.findByText(/It declares that it changes nothing/);
  fireEvent.change(await screen.findByLabelText("whom"), { target: { value: "Anna" } });
  fireEvent.click(screen.getByRole("button", { name: "Call the tool" }));
  const end = within(await screen.findByRole("region", { name: "Result" }));
  end.getByText(`# wattle.toml\n[grants.shared]\n${LINE}`, { normalizer: String });
  expect(sent.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
    ["/api/v1/plugins/shared/tools/hail/call", { input: { whom: "Anna" } }],
  ]);
});

test("the tool of a plugin in an app is called there", async () => {
  plugins = [{ ...GREETER, tool_schemas: [HAIL] }];
  show("/plugins/greeter/play?app=notes&tool=hail", OPERATOR);
  fireEvent.change(await screen.findByLabelText("whom"), { target: { value: "Anna" } });
  fireEvent.click(screen.getByRole("button", { name: "Call the tool" }));
  await screen.findByRole("region", { name: "Result" });
  expect(sent.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
    ["/api/v1/apps/notes/tools/greeter%2Fhail/call", { input: { whom: "Anna" } }],
  ]);
});

test("the node of a plugin leads to a playground, in the app that uses it", async () => {
  plugins = [GREETER, pluginOf("shared")];
  const link = async () => (await screen.findByText("Call this node alone")).getAttribute("href");
  show("/plugins/greeter?app=notes", OPERATOR);
  expect(await link()).toBe("/plugins/greeter/play?app=notes&node=greet");
  cleanup();
  show("/plugins/shared", OPERATOR);
  expect(await link()).toBe("/plugins/shared/play?node=greet");
});

test("the node of a plugin that no app uses is called alone, with a configuration", async () => {
  const properties = { greeting: { type: "string" } };
  const config_schema = { type: "object", properties, required: ["greeting"] };
  plugins = [pluginOf("shared", { nodes: [{ ...GREET, config_schema }], tool_schemas: [HAIL] })];
  show("/plugins/shared/play?node=greet", OPERATOR);
  fireEvent.change(await screen.findByLabelText("name"), { target: { value: "Anna" } });
  fireEvent.click(screen.getByRole("button", { name: "Call the node" }));
  await screen.findByText("Enter a value.");
  expect(sent).toEqual([]);
  fireEvent.change(screen.getByLabelText("greeting"), { target: { value: "hello" } });
  fireEvent.click(screen.getByRole("button", { name: "Call the node" }));
  const shown = await screen.findByRole("region", { name: "Result" });
  const end = within(shown);
  end.getByText("completed");
  end.getByText(`# wattle.toml\n[grants.shared]\n${LINE}`, { normalizer: String });
  expect(end.getByRole("group", { name: "Outcome" }).textContent).toContain("writes");
  end.getByText("2 more log messages are not listed.");
  expect(document.querySelector("img")).toBeNull();
  expect(sent.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
    [
      "/api/v1/plugins/shared/nodes/greet/call",
      { input: { name: "Anna" }, config: { greeting: "hello" } },
    ],
  ]);
});

test("the node of a plugin in an app is called there, and its interrupts are shown", async () => {
  const { outcome: _, ...rest } = NODE_END;
  nodeEnd = { ...rest, calls: [], interrupts: [{ payload: HOSTILE }] };
  plugins = [
    { ...GREETER, nodes: [GREET] },
    { ...GREETER, app: "other", nodes: [GREET] },
  ];
  const { history } = show("/plugins/greeter/play?app=notes&node=greet", OPERATOR);
  fireEvent.change(await screen.findByLabelText("name"), { target: { value: "Anna" } });
  const back = screen.getByRole("link", { name: "Plugin greeter" });
  expect(back.getAttribute("href")).toBe("/plugins/greeter?app=notes");
  fireEvent.click(screen.getByRole("button", { name: "Call the node" }));
  const end = within(await screen.findByRole("region", { name: "Result" }));
  end.getByText("interrupted");
  end.getByText(/Nobody can answer them/);
  expect(end.queryByRole("group", { name: "Outcome" })).toBeNull();
  expect(sent.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
    ["/api/v1/apps/notes/nodes/greeter%2Fgreet/call", { input: { name: "Anna" } }],
  ]);
  // Another app has not called it.
  act(() => history.push("/plugins/greeter/play?app=other&node=greet"));
  await waitFor(() => expect(screen.queryByRole("region", { name: "Result" })).toBeNull());
  await screen.findByRole("button", { name: "Call the node" });
});

test("a node that a plugin does not have is named", async () => {
  plugins = [pluginOf("shared", { tool_schemas: [HAIL] })];
  show("/plugins/shared/play?node=gone", OPERATOR);
  await screen.findByText("The plugin has no such node.");
  expect(screen.getByLabelText("What is tried")).toHaveProperty("value", "node:gone");
  cleanup();
  show("/plugins/shared/play?app=nobody&node=greet", OPERATOR);
  await screen.findByText("The app does not use the plugin.");
});

test("the playground of a plugin that apps use begins with the choice of an app", async () => {
  show("/plugins/greeter/play", OPERATOR);
  await screen.findByText("Apps use this plugin. Choose the one in which it is tried.");
  const apps = within(screen.getByRole("list", { name: "Apps with this plugin" }));
  const links = apps.getAllByRole("link").map((it) => [it.textContent, it.getAttribute("href")]);
  expect(links).toEqual([
    ["notes", "/plugins/greeter/play?app=notes"],
    ["other", "/plugins/greeter/play?app=other"],
  ]);
});

test("a tool that a plugin does not have is named, and no other one is shown", async () => {
  plugins = [pluginOf("shared", { tool_schemas: [HAIL] })];
  show("/plugins/shared/play?tool=gone", OPERATOR);
  await screen.findByText("The plugin has no such tool.");
  expect(screen.getByLabelText("What is tried")).toHaveProperty("value", "tool:gone");
  expect(screen.queryByRole("button", { name: "Call the tool" })).toBeNull();
});

test("the entries of several apps are told apart, and an unknown one is named", async () => {
  show("/plugins/greeter?app=other", OPERATOR);
  const apps = within(await screen.findByRole("navigation", { name: "Apps with this plugin" }));
  expect(apps.getByRole("link", { name: "other" }).getAttribute("aria-current")).toBe("true");
  await screen.findByText("The plugin requests nothing and is granted nothing.");
  cleanup();
  show("/plugins/greeter?app=nobody", OPERATOR);
  await screen.findByText("The app nobody does not use the plugin.");
  cleanup();
  show("/plugins/gone", OPERATOR);
  await screen.findByText("The host has no such plugin.");
});

/** Drops files on the page. */
function drop(...files: File[]): void {
  const event = new Event("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: { files, types: ["Files"] } });
  document.body.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(true);
}

const component = (name: string) => new File(["\0asm"], name);

test("a dropped component is checked, and installed when a user confirms", async () => {
  show("/plugins", { ...OPERATOR, install: true });
  await screen.findByRole("region", { name: "Install a plugin" });
  drop(component("shared.wasm"));
  await screen.findByText("A plugin with this name is installed. It will be replaced.");
  expect(screen.getByText(LINE)).toBeDefined();
  const checked = { method: "POST", path: "/api/v1/plugins/shared/check" };
  const body = { type: "application/wasm", body: "\0asm" };
  expect(sent).toEqual([{ ...checked, ...body }]);
  fireEvent.click(screen.getByRole("button", { name: "Replace shared" }));
  await screen.findByRole("heading", { name: "shared" });
  expect(sent[1]).toEqual({ method: "PUT", path: "/api/v1/plugins/shared", ...body });
  fireEvent.click(await screen.findByRole("button", { name: "Remove" }));
  const dialog = within(await screen.findByRole("dialog"));
  fireEvent.click(dialog.getByRole("button", { name: "Remove" }));
  await screen.findByRole("heading", { name: "Plugins" });
  expect(sent[2]).toMatchObject({ method: "DELETE", path: "/api/v1/plugins/shared" });
});

test("a component that the host refuses is not installed, and has another name on request", async () => {
  refusal = `it is a text file ${HOSTILE}`;
  show("/plugins", { ...OPERATOR, install: true });
  await screen.findByRole("region", { name: "Install a plugin" });
  drop(component("a b (1).wasm"));
  await screen.findByText("it is a text file <img src=x onerror=alert(1)> [U+202E]gnp");
  expect(screen.queryByRole("button", { name: /Install|Replace/ })).toBeNull();
  refusal = undefined;
  fireEvent.change(screen.getByLabelText("Name of the plugin"), { target: { value: "shared" } });
  expect(screen.queryByRole("alert")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Check" }));
  await screen.findByRole("button", { name: "Replace shared" });
  expect(sent.map(({ path }) => path)).toEqual([
    "/api/v1/plugins/a%20b%20(1)/check",
    "/api/v1/plugins/shared/check",
  ]);
});

test("what is no component is not sent", async () => {
  show("/plugins", { ...OPERATOR, install: true });
  await screen.findByRole("region", { name: "Install a plugin" });
  drop(component("notes.txt"));
  await screen.findByText("notes.txt is not a .wasm file.");
  drop(component("a.wasm"), component("b.wasm"));
  await screen.findByText("Drop one file at a time.");
  const large = component("large.wasm");
  Object.defineProperty(large, "size", { value: 64 * 1024 * 1024 + 1 });
  drop(large);
  await screen.findByText("The file is larger than 64.0 MiB.");
  expect(sent).toEqual([]);
});

test("a host that installs nothing says how to allow it", async () => {
  show("/plugins", OPERATOR);
  await screen.findByText(/Add install = true under \[server\]/);
  expect(screen.queryByRole("region", { name: "Install a plugin" })).toBeNull();
});

test("permissions are listed by kind, and those without content are left out", () => {
  const rows = permissionsOf(GREETER);
  expect(rows.map(({ need }) => need)).toEqual(["llm", "http", "sql", "in_doubt"]);
  expect(rows[2]?.granted).toEqual(["own: read-write", "sales: access read-only"]);
});

test("models have their prices, and a model without one says so", async () => {
  show("/models", OPERATOR);
  expect((await rowOf("Routes", "small"))?.textContent).toBe("chatsmall0.150.6");
  expect((await rowOf("Routes", "onerror"))?.textContent).toMatch(/no priceno price$/);
  expect((await rowOf("Prices of other models", "unused"))?.textContent).toBe("unused12");
  // A narrow window scrolls a table, by keys, too.
  for (const name of ["Routes", "Prices of other models"]) {
    const frame = screen.getByRole("group", { name });
    expect(frame).toHaveProperty("tabIndex", 0);
    within(frame).getByRole("table", { name });
  }
});

test("a key that is not the operator's sees neither plugins nor models", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    asked.push(url);
    return Response.json([]);
  });
  for (const route of ["/plugins", "/plugins/greeter", "/plugins/greeter/play", "/models"]) {
    show(route, { scope: "admin", is_operator: false });
    await screen.findByText(/^Only the operator of the host (sees|calls)/);
    expect(screen.queryByRole("link", { name: "Plugins" })).toBeNull();
    cleanup();
  }
  expect(asked.filter((url) => /api\/v1\/(plugins|models)/.test(url))).toEqual([]);
});
