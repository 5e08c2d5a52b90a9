// The operation of the host, as a user sees it.
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { credentials, noteTenantHeader, setKey } from "../../src/access/key.ts";
import type { Access } from "../../src/access/scope.ts";
import { newKeyOf } from "../../src/operations/key-form.tsx";
import { showKey } from "../../src/operations/made-key.ts";
import { problem } from "../host.ts";
import { show as showAs } from "../show.tsx";

// The tests have no canvas to draw on.
vi.mock("@wattle/page/plot", () => ({ default: () => null }));

/** Height of a table. Without a layout it would have room for no row. */
const HEIGHT_PX = 600;

interface Asked {
  method: string;
  path: string;
  search: string;
  body: unknown;
}

let asked: Asked[];
/** What the host returns at a path, in place of an empty list. */
let documents: Record<string, unknown>;

beforeEach(() => {
  asked = [];
  documents = {};
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(HEIGHT_PX);
  vi.stubGlobal("fetch", async (request: Request) => respond(request));
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  noteTenantHeader(null);
  setKey(null);
  showKey(undefined);
});

async function respond(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const path = pathname.replace("/api/v1", "");
  const { method } = request;
  const body: unknown = method === "GET" ? null : JSON.parse((await request.text()) || "null");
  if (path !== "/apps") asked.push({ method, path, search, body });
  const found = documents[`${method} ${path}`] ?? documents[`${method} ${path}${search}`];
  if (found instanceof Response) return found.clone();
  if (found !== undefined) return Response.json(found);
  return Response.json(["/apps", "/keys", "/hosts"].includes(path) ? [] : { items: [] });
}

function show(path: string, values: Partial<Access> = {}): void {
  noteTenantHeader(values.tenant_header ?? null);
  showAs(path, { is_operator: true, ...values });
}

async function parts(): Promise<string[]> {
  const nav = await screen.findByRole("navigation", { name: "Parts of the operation" });
  return within(nav)
    .getAllByRole("link")
    .map((link) => link.textContent ?? "");
}

test("the parts are those that the key permits and the host has", async () => {
  show("/operations?part=hosts", { is_operator: false, agent_server: false });
  expect(await parts()).toEqual(["Statistics", "Limits reached", "Queue", "Keys"]);
  cleanup();
  show("/operations", { scope: "read", is_operator: false });
  expect(await parts()).toEqual(["Crons"]);
  await screen.findByText("No client has created a cron.");
  cleanup();
  show("/operations", { scope: "read", agent_server: false });
  await screen.findByText("The key permits no part of the operation.");
});

test("the queue of all tenants is shown page by page", async () => {
  const item = (run: string) => ({
    run,
    thread: "<b>t\u202e",
    app: "notes",
    tenant: "acme",
    created_ms: 1,
    due_ms: 2,
    key: "k1",
    user: "jane",
  });
  documents["GET /queue?tenant=*"] = { items: [item("r1")], next_cursor: "7" };
  documents["GET /queue?tenant=*&cursor=7"] = { items: [item("r2")] };
  show("/operations?part=queue", { tenant_header: "x-tenant" });
  const run = await screen.findByRole("link", { name: "r1" });
  expect(run.getAttribute("href")).toMatch(/runs\/r1\?tenant=acme$/);
  screen.getByRole("link", { name: "<b>t[U+202E]" });
  screen.getByText("user jane, key k1");
  fireEvent.click(screen.getByRole("button", { name: "Show more" }));
  await screen.findByRole("link", { name: "r2" });
  expect(screen.queryByRole("button", { name: "Show more" })).toBeNull();
});

test("a pending run without a tenant has no link on a host with tenants", async () => {
  const item = { run: "r1", thread: "t1", app: "notes", created_ms: 1, due_ms: 2 };
  documents["GET /queue?tenant=*"] = { items: [item] };
  show("/operations?part=queue", { tenant_header: "x-tenant" });
  await screen.findByText("r1");
  screen.getByText("t1");
  expect(screen.queryByRole("link", { name: /^[rt]1$/ })).toBeNull();
});

test("the field of the tenant keeps the focus, and says what is wrong", async () => {
  show("/operations?part=queue", { tenant_header: "x-tenant" });
  const field = await screen.findByLabelText<HTMLInputElement>("Tenant");
  field.focus();
  fireEvent.change(field, { target: { value: "acme" } });
  fireEvent.submit(field);
  await waitFor(() => expect(asked.at(-1)?.search).toBe("?tenant=acme"));
  expect(document.activeElement).toBe(field);
  const long = "x".repeat(257);
  fireEvent.change(field, { target: { value: long } });
  fireEvent.submit(field);
  await screen.findByText("The text is too long.");
  expect(field.value).toBe(long);
  expect(asked.at(-1)?.search).toBe("?tenant=acme");
});

test("webhooks show their deliveries, and why they were not delivered", async () => {
  documents["GET /webhooks?status=abandoned"] = {
    items: [
      {
        run: "r1",
        thread: "t1",
        url: "https://hooks.example/x",
        status: "abandoned",
        has_ended: true,
        attempts: 8,
        abandoned_ms: 5,
        last_error: "status 500 <img>",
      },
    ],
  };
  documents["GET /webhooks?status=delivered"] = {
    items: [
      {
        run: "r2",
        thread: "t1",
        url: "https://hooks.example/y",
        status: "delivered",
        has_ended: true,
        attempts: 1,
        delivered_ms: 9,
        attempt_log: [
          { at_ms: 1, duration_ms: 1_500, error: "no answer <b>" },
          { at_ms: 8, duration_ms: 3, status: 204 },
        ],
      },
    ],
  };
  show("/operations?part=webhooks");
  await screen.findByText("No webhook waits for its delivery.");
  fireEvent.click(screen.getByLabelText("Abandoned"));
  await screen.findByText(/status 500 <img>/);
  screen.getByText("https://hooks.example/x");
  fireEvent.click(screen.getByLabelText("Delivered"));
  const attempts = await screen.findByRole("region", { name: "Attempts" });
  const texts = within(attempts)
    .getAllByRole("listitem")
    .map(({ textContent }) => textContent);
  expect(texts[0]).toMatch(/No response1\.50 sno answer <b>$/);
  expect(texts[1]).toMatch(/Status 2043\.00 ms$/);
});

test("a key is created, shown once, and used on a host that had none", async () => {
  documents["POST /keys"] = {
    id: "k9",
    name: "ops",
    scopes: ["admin"],
    created_ms: 1,
    key: "wattle_k9_secret",
  };
  show("/operations?part=keys", { needs_key: false });
  await screen.findByText("No key was created.");
  screen.getByText(/Once a key exists, every request needs one/);
  fireEvent.click(screen.getByRole("button", { name: "Create a key" }));
  fireEvent.click(screen.getByRole("button", { name: "Create" }));
  await screen.findByText("Enter a name.");
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: " ops " } });
  fireEvent.click(screen.getByRole("button", { name: "Create" }));
  await screen.findByText("wattle_k9_secret");
  const sent = asked.find(({ method }) => method === "POST");
  expect(sent?.body).toEqual({ name: "ops", scopes: ["admin"] });
  await waitFor(() => expect(credentials().key).toBe("wattle_k9_secret"));
  fireEvent.click(screen.getByRole("button", { name: "I have kept it" }));
  expect(screen.queryByText("wattle_k9_secret")).toBeNull();
});

test("the fields of a new key are checked", () => {
  const draft = { name: "n", scope: "read", tenant: " acme ", rate: "5/s", days: "30" } as const;
  expect(newKeyOf(draft)).toEqual({
    name: "n",
    scopes: ["read"],
    tenant: "acme",
    rate: "5/s",
    expires_in_ms: 30 * 86_400_000,
  });
  for (const days of ["0", "-1", "1.5", "x", "100000"]) {
    expect(newKeyOf({ ...draft, days })).toHaveProperty("days");
  }
});

test("a key is revoked after a confirmation, the last one after another choice", async () => {
  const key = { id: "k1", name: "old", scopes: ["write"], created_ms: 1, expires_ms: 2 };
  documents["GET /keys"] = [key];
  documents["DELETE /keys/k1?made=true"] = problem(409, "the key is the last active one");
  documents["DELETE /keys/k1?made=true&open=true"] = { revoked: ["k1"], left: ["k2"] };
  show("/operations?part=keys");
  fireEvent.click(await screen.findByRole("button", { name: "Revoke old" }));
  screen.getByText("expired");
  const dialog = within(await screen.findByRole("dialog", { name: "Revoke old?" }));
  fireEvent.click(dialog.getByLabelText("Also revoke the keys that were created with it"));
  const revoke = () => fireEvent.click(dialog.getByRole("button", { name: "Revoke" }));
  const sent = () => asked.filter(({ method }) => method === "DELETE").map(({ search }) => search);
  revoke();
  await dialog.findByText("The host refused this: the key is the last active one");
  dialog.getByText("Without its last key, everybody who reaches the host may do everything.");
  revoke();
  await waitFor(() => expect(sent()).toEqual(["?made=true", "?made=true"]));
  fireEvent.click(await dialog.findByRole("checkbox", { name: "Revoke it all the same" }));
  documents["GET /keys"] = [];
  revoke();
  await screen.findByText("No key was created.");
  expect(sent()).toEqual(["?made=true", "?made=true", "?made=true&open=true"]);
  screen.getByText("A key that was created with it still works.");
});

const SIZES = {
  measured_ms: 1,
  threads: 3,
  bytes: 2_048,
  apps: [{ name: "notes", is_other: false, threads: 3, bytes: 2_048 }],
  tenants: [
    { is_other: false, threads: 1, bytes: 1_024 },
    { is_other: true, threads: 2, bytes: 1_024 },
  ],
  files: [{ name: "blobs", is_folder: true, files: 1_234, bytes: 5 }],
  is_complete: false,
};

test("the store is measured by itself and verified on request", async () => {
  documents["GET /store/sizes"] = SIZES;
  documents["GET /store/verify"] = {
    threads: 3,
    damaged: [{ subject: "thread <x>", reason: "the seal does not match" }],
  };
  show("/operations?part=store");
  const tenants = await screen.findByRole("table", { name: "By tenant" });
  expect(
    within(tenants)
      .getAllByRole("row")
      .slice(1)
      .map((row) => row.textContent),
  ).toEqual(["without a tenant11.0 KiB", "others21.0 KiB"]);
  screen.getByText("blobs/");
  screen.getByText("1,234");
  screen.getByText("The data folder has more files than are measured.");
  expect(asked.some(({ path }) => path === "/store/verify")).toBe(false);
  const verified = documents["GET /store/verify"];
  documents["GET /store/verify"] = problem(503, "the store is busy \u202e");
  fireEvent.click(screen.getByRole("button", { name: "Verify the store" }));
  await screen.findByText("The host refused this: the store is busy [U+202E]");
  documents["GET /store/verify"] = verified;
  fireEvent.click(screen.getByRole("button", { name: "Verify the store" }));
  await screen.findByText("thread <x>: the seal does not match");
});

test("the store is backed up, and compacted after a question", async () => {
  documents["GET /store/sizes"] = SIZES;
  documents["POST /store/backup"] = {
    folder: "/data/backups/1\u202e",
    damaged: [{ subject: "blob b1", reason: "it is missing" }],
  };
  documents["POST /store/compact"] = problem(503, "the store is busy");
  show("/operations?part=store");
  fireEvent.click(await screen.findByRole("button", { name: "Back up the store" }));
  await screen.findByText("/data/backups/1[U+202E]");
  screen.getByText("blob b1: it is missing");

  const compactions = () => asked.filter(({ path }) => path === "/store/compact").length;
  fireEvent.click(screen.getByRole("button", { name: "Compact the store" }));
  const dialog = await screen.findByRole("dialog", { name: "Compact the store?" });
  expect(compactions()).toBe(0);
  const confirm = within(dialog).getByRole("button", { name: "Compact the store" });
  fireEvent.click(confirm);
  await screen.findByText("The host refused this: the store is busy");
  documents["POST /store/compact"] = { before_bytes: 2_048, after_bytes: 1_024 };
  fireEvent.click(confirm);
  await screen.findByText("2.0 KiB before, 1.0 KiB now.");
  expect(compactions()).toBe(2);
});

test("a list says that it is empty only after its last page", async () => {
  documents["GET /webhooks?status=pending"] = { items: [], next_cursor: "r1" };
  documents["GET /webhooks?cursor=r1&status=pending"] = { items: [] };
  show("/operations?part=webhooks");
  await screen.findByText("None of the examined items matches the filters.");
  fireEvent.click(screen.getByRole("button", { name: "Show more" }));
  await screen.findByText("No webhook waits for its delivery.");
});

/** What the runs of an app did. */
const COUNTS = {
  runs: { completed: 4, interrupted: 0, failed: 0, cancelled: 0 },
  failures: {},
  limits: {},
  durations: [],
  model_calls: 2,
  failed_model_calls: 0,
  input_tokens: 1_200,
  output_tokens: 0,
  cost: 0.25,
  unpriced_tokens: 7,
};

test("a limit that runs reached leads to the threads that failed by it", async () => {
  const total = { ...COUNTS, limits: { host_calls: 2 }, failures: { limit: 2, trap: 1 } };
  documents["GET /statistics"] = {
    step: "hour",
    from_ms: 0,
    to_ms: 3_600_000,
    is_complete: true,
    series: [{ name: "notes", is_other: false, total, points: [] }],
  };
  show("/operations?part=limits");
  const rows = async (table: string) => {
    const found = within(await screen.findByRole("table", { name: table })).getAllByRole("row");
    return found.slice(1).map((row) => row.textContent);
  };
  expect(await rows("Limits that runs reached")).toEqual(["host_callsnotes2Threads"]);
  expect(await rows("Failed runs by code")).toEqual(["limitnotes2Threads", "trapnotes1Threads"]);
  const [limit, , trap] = screen.getAllByRole("link", { name: "Threads" }).slice(-3);
  expect(limit?.getAttribute("href")).toBe("/threads?failure=limit&app=notes");
  expect(trap?.getAttribute("href")).toBe("/threads?failure=trap&app=notes");
});

test("requests that the host rejected are listed by limit, for the operator", async () => {
  const counts = { runs: 0, max_runs: 8, started_ms: 1, silent_ms: 0 };
  const host = { status: "running", version: "0.1.0", ...counts };
  documents["GET /hosts"] = [
    { ...host, host: "one", is_this: false },
    // A connection that was idle exceeded no limit.
    { ...host, host: "two", is_this: true, cut: { idle: 9, size: 1, rate: 1_234 } },
  ];
  const range = { step: "hour", from_ms: 0, to_ms: 3_600_000 };
  documents["GET /statistics"] = { ...range, is_complete: true, series: [] };
  show("/operations?part=limits");
  const table = await screen.findByRole("table", { name: "Rejected requests" });
  const rows = within(table).getAllByRole("row").slice(1);
  expect(rows.map((row) => row.textContent)).toEqual([
    "Rate of a key or an address4291,234",
    "Size of a request body4131",
  ]);
  cleanup();
  asked = [];
  show("/operations?part=limits", { is_operator: false });
  await waitFor(() => expect(asked.map(({ path }) => path)).toContain("/statistics"));
  expect(asked.map(({ path }) => path)).not.toContain("/hosts");
  expect(screen.queryByText("Rejected requests")).toBeNull();
});

test("a plot has its numbers in a table, and a model has no runs", async () => {
  const points = [{ start_ms: 3_600_000, counts: COUNTS }];
  documents["GET /statistics"] = {
    step: "hour",
    from_ms: 0,
    to_ms: 3_600_000,
    is_complete: true,
    series: [{ name: "notes", is_other: false, total: COUNTS, points }],
  };
  show("/operations?by=app");
  const runs = await screen.findByRole("table", { name: "Runs by time" });
  const cells = within(runs).getAllByRole("row")[1]?.textContent;
  expect(cells).toMatch(/4$/);
  within(runs).getByText("notes (4)");
  screen.getByText("No run failed in this time.");
  screen.getByText("7 tokens are of models without a price.");
  const [{ search } = { search: "" }] = asked.filter(({ path }) => path === "/statistics");
  const query = new URLSearchParams(search);
  expect([query.get("step"), query.get("by"), query.get("tenant")]).toEqual(["hour", "app", null]);
  cleanup();
  show("/operations?by=model");
  await screen.findByRole("table", { name: "Tokens by time" });
  expect(screen.queryByRole("heading", { name: "Runs" })).toBeNull();
  cleanup();
  // Series of tenants are the operator's.
  show("/operations?by=tenant", { is_operator: false });
  await screen.findByRole("table", { name: "Runs by time" });
  expect(screen.queryByRole("option", { name: "Tenant" })).toBeNull();
});
