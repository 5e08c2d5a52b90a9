// The views of an app and its graphs, as a user sees them.
import { act, cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { GraphDocument } from "../../src/graph/definition.ts";
import { problem } from "../host.ts";
import {
  checkpointed,
  type Kind,
  log,
  RUN,
  runEnded,
  runStarted,
  taskFailed,
  taskFinished,
  taskStarted,
} from "../run/log.ts";
import { show } from "../show.tsx";
import { graphOf } from "./apps.ts";

const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

/** The version that the events of a run name. */
const PINNED = "ab".repeat(32);

const CURRENT = "cd".repeat(32);

/** Time after which a graph is read again, in milliseconds. */
const LATER_MS = 60_000;

const INNER = graphOf({ entry: "step", nodes: { step: {} } }, { name: "inner" });

const MAIN = graphOf(
  {
    entry: ["plan"],
    channels: { n: { schema: { type: "integer" }, doc: HOSTILE } },
    nodes: { plan: {}, work: { graph: "inner" } },
    branches: [{ name: "which", from: ["plan"], cases: [{ when: "state.n > 1", to: ["work"] }] }],
  },
  {
    version: CURRENT,
    nodes: {
      plan: { plugin: "notes", function: "plan", doc: HOSTILE, input_schema: { type: "object" } },
    },
  },
);

/** The version of the nested graph that belongs to the older version. */
const FORMER = "ef".repeat(32);

const FORMER_INNER = graphOf(
  { entry: "former", nodes: { former: {} } },
  { name: "inner", version: FORMER },
);

const OLD = graphOf(
  { entry: ["plan"], nodes: { plan: {}, review: { graph: "inner" } } },
  {
    version: PINNED,
    nodes: { review: { subgraph: "inner", subgraph_version: FORMER, doc: "" } },
  },
);

/** The older version of the graph with the newer nested one. */
const REVIEWED = { ...OLD, version: CURRENT, nodes: {} };

/** The current and the older version of each graph. */
let answers: Record<string, readonly [current: GraphDocument, older: GraphDocument]>;
let events: Kind[];
let versions: { version: string; is_loaded: boolean; is_current: boolean }[];

beforeEach(() => {
  answers = { main: [MAIN, OLD], inner: [INNER, FORMER_INNER] };
  events = [];
  versions = [
    { version: CURRENT, is_loaded: true, is_current: true },
    { version: PINNED, is_loaded: false, is_current: false },
  ];
  serve();
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function serve(): void {
  vi.stubGlobal("fetch", async (request: Request) => answer(new URL(request.url)));
}

/** Returns what the host responds. */
function answer({ pathname, searchParams }: URL): Response {
  const isOlder = [PINNED, FORMER].includes(searchParams.get("version") ?? "");
  const [, name = ""] = /\/apps\/notes\/graphs\/([^/]+)$/.exec(pathname) ?? [];
  const found = answers[name]?.[isOlder ? 1 : 0];
  if (found !== undefined) return Response.json(found);
  if (pathname.endsWith("/versions")) return Response.json(versions);
  if (pathname === "/api/v1/apps/notes") return Response.json(appOf());
  if (pathname === `/api/v1/runs/${RUN}`) {
    return Response.json({ run: RUN, app: "notes", status: "completed" });
  }
  if (pathname === "/api/v1/threads/t1/log") {
    const items = log(...events);
    return Response.json({ items, last_seq: items.length });
  }
  return problem(404, "there is no such thing");
}

function appOf() {
  const lists = { plugins: ["notes"], settings: [], endpoints: [{ method: "GET", path: "/x" }] };
  return { name: "notes", doc: HOSTILE, version: "1", digest: "ef", graphs: ["main"], ...lists };
}

/** Time in which the code of a view is loaded on a busy machine. */
const VIEW_LOADED = { timeout: 4_000 };

const link = (name: string) => screen.findByRole("link", { name });

const box = (id: string) =>
  waitFor(() => {
    const found = document.querySelector<HTMLElement>(`[data-node="${id}"]`);
    if (found === null) throw new Error(`no item ${id}`);
    return found;
  }, VIEW_LOADED);

const item = async (id: string) => within(await box(id)).getAllByRole("button")[0] as HTMLElement;

test("an app leads to its graph, whose items say what they are", async () => {
  const { history } = show("/apps/notes");
  fireEvent.click(await link("main"));
  fireEvent.click(await item("plan"));
  const panel = await screen.findByRole("complementary", { name: "plan" });
  expect(panel.textContent).toContain("<img src=x onerror=alert(1)> [U+202E]gnp");
  within(panel).getByRole("group", { name: "Input schema" });
  expect(history.location.href).toBe("/apps/notes/graphs/main?node=plan");
  const tries = await screen.findAllByRole("link", { name: "Try in the playground" });
  expect(tries.map((it) => it.getAttribute("href"))).toEqual([
    "/apps/notes/play?graph=main",
    "/apps/notes/play?graph=main&node=plan",
  ]);
  fireEvent.click(await item("?which"));
  const branch = await screen.findByRole("complementary", { name: "which" });
  expect(branch.textContent).toContain("state.n > 1");
  fireEvent.click(await item("[start]"));
  const start = await screen.findByRole("complementary", { name: "beginning of the graph" });
  within(start).getByRole("group", { name: "n" });
  expect(document.querySelector("img")).toBeNull();
});

test("keys move between items and open a nested graph", async () => {
  show("/apps/notes/graphs/main");
  const start = await item("[start]");
  start.focus();
  fireEvent.keyDown(start, { key: "ArrowDown" });
  const plan = await item("plan");
  await waitFor(() => expect(document.activeElement).toBe(plan));
  expect(plan.tabIndex).toBe(0);
  expect(start.tabIndex).toBe(-1);
  fireEvent.keyDown(await item("work"), { key: "o" });
  await item("step");
  expect((await box("work")).dataset.open).toBe("true");
  fireEvent.keyDown(await item("work"), { key: "o" });
  await waitFor(() => expect(document.querySelector('[data-node="step"]')).toBeNull());
});

test("the address of an item in a nested graph opens it", async () => {
  show("/apps/notes/graphs/main?node=work%2Fstep");
  await screen.findByRole("complementary", { name: "step" });
  expect((await item("step")).getAttribute("aria-pressed")).toBe("true");
});

test("a nested graph of an older version is that of this version", async () => {
  show(`/apps/notes/graphs/main?version=${PINNED}&node=review%2Fformer`);
  await screen.findByRole("complementary", { name: "former" });
  expect(document.querySelector('[data-node="step"]')).toBeNull();
});

test("two versions are compared in one picture", async () => {
  const { history } = show("/apps/notes/graphs/main");
  fireEvent.change(await screen.findByLabelText("Compare with"), { target: { value: PINNED } });
  expect((await box("work")).dataset.mark).toBe("added");
  expect((await box("plan")).dataset.mark).toBe("changed");
  const list = await screen.findByRole("list", { name: "Differences" });
  expect(list.textContent).toContain("Added: subgraph work");
  expect(history.location.href).toBe(`/apps/notes/graphs/main?against=${PINNED}`);
});

test("a changed item shows what differs, and its schemas in the version before", async () => {
  const input_schema = { type: "object", properties: { [HOSTILE]: { type: "string" } } };
  const plan = { plugin: "notes", function: "plan", doc: "", input_schema };
  const channels = { n: { schema: { type: "string" } }, gone: {} };
  const definition = { entry: ["plan"], nodes: { plan: {} }, channels, context_schema: {} };
  const older = graphOf(definition, { version: PINNED, nodes: { plan } });
  answers = { main: [MAIN, older], inner: [INNER, FORMER_INNER] };
  show(`/apps/notes/graphs/main?against=${PINNED}&node=plan`);
  const panel = await screen.findByRole("complementary", { name: "plan" });
  const changes = within(panel).getByRole("list", { name: "Changes" });
  expect(changes.textContent).toContain("input_schema.properties");
  expect(within(panel).queryByRole("group", { name: "Input schema before" })).toBeNull();
  fireEvent.click(within(panel).getByRole("button", { name: "Version before" }));
  const before = within(panel).getByRole("group", { name: "Input schema before" });
  expect(before.textContent).toContain("[U+202E]gnp");
  fireEvent.click(await item("[start]"));
  const start = await screen.findByRole("complementary", { name: "beginning of the graph" });
  const [channel] = within(start).getAllByRole("listitem");
  expect(channel?.textContent).toMatch(/^channels\.n\.schema\.type ?changed.*string.*integer/);
  const list = within(start).getByRole("list", { name: "Changes" });
  expect(list.textContent).toMatch(/channels\.goneremoved.*context_schemaremoved/);
  expect(document.querySelector("img")).toBeNull();
});

test("a node with other code has a mark, and shows the digests of its component", async () => {
  const versionOf = (version: string, digest: string) => {
    const plan = { plugin: "notes", function: "plan", digest, doc: "" };
    return graphOf({ entry: ["plan"], nodes: { plan: {} } }, { version, nodes: { plan } });
  };
  answers = { main: [versionOf(CURRENT, "2".repeat(64)), versionOf(PINNED, "1".repeat(64))] };
  show(`/apps/notes/graphs/main?against=${PINNED}&node=plan`);
  const panel = await screen.findByRole("complementary", { name: "plan" });
  within(panel).getByText("The component is another one: 111111111111 → 222222222222.");
  expect(within(panel).queryByRole("button", { name: "Version before" })).toBeNull();
  expect((await box("plan")).dataset.mark).toBe("code");
  const list = await screen.findByRole("list", { name: "Differences" });
  expect(list.textContent).toBe("Code changed: node plan");
});

test("an added or removed item shows its own version", async () => {
  const node = { plugin: "notes", function: "plan", doc: "", output_schema: { type: "null" } };
  const older = graphOf({ nodes: { gone: {} } }, { version: PINNED, nodes: { gone: node } });
  answers = { main: [MAIN, older], inner: [INNER, FORMER_INNER] };
  show(`/apps/notes/graphs/main?against=${PINNED}&node=gone`);
  const gone = await screen.findByRole("complementary", { name: "gone" });
  within(gone).getByRole("group", { name: "Output schema" });
  // The newer version has no such node to try.
  expect(within(gone).queryByRole("link", { name: "Try in the playground" })).toBeNull();
  fireEvent.click(await item("plan"));
  const plan = await screen.findByRole("complementary", { name: "plan" });
  within(plan).getByRole("group", { name: "Input schema" });
  expect(within(plan).queryByRole("list", { name: "Changes" })).toBeNull();
});

test("a nested graph is compared in its node", async () => {
  answers = { main: [REVIEWED, OLD], inner: [INNER, FORMER_INNER] };
  show(`/apps/notes/graphs/main?against=${PINNED}`);
  expect((await box("review")).dataset.mark).toBe("changed");
  fireEvent.click(await item("review"));
  const panel = await screen.findByRole("complementary", { name: "review" });
  within(panel).getByText(/^The graph of the node has changes/);
  fireEvent.click(await screen.findByRole("button", { name: "Open nested graphs" }));
  expect((await box("step")).dataset.mark).toBe("added");
  expect((await box("former")).dataset.mark).toBe("removed");
  const list = await screen.findByRole("list", { name: "Differences" });
  expect(list.textContent).toContain("Added: node review/step");
  expect(list.textContent).toContain("Removed: edge review/former → end");
});

test("a comparison names the nested graphs that the host lacks, and shows the rest", async () => {
  answers = { main: [MAIN, OLD] };
  show(`/apps/notes/graphs/main?against=${PINNED}`);
  expect((await box("work")).dataset.mark).toBe("added");
  const list = screen.getByRole("list", { name: "Differences" });
  expect(list.textContent).toContain("Removed: subgraph review");
  screen.getByText("The host does not have the nested graph inner, so it is not shown.");
  screen.getByText(/^The host does not have the nested graph inner \(version ef/);
});

test("a picture names an opened graph that the host lacks", async () => {
  answers = { main: [MAIN, OLD] };
  show("/apps/notes/graphs/main?node=work/step");
  await box("work");
  screen.getByText("The host does not have the nested graph inner, so it is not shown.");
});

test.each([
  "/apps/notes/graphs/main",
  `/apps/notes/graphs/main?against=${PINNED}`,
  `/threads/t1/runs/${RUN}?view=graph`,
])("a picture stays while its graph cannot be read again: %s", async (route) => {
  events = [{ ...runStarted(), graph: "main" }, runEnded()];
  const { readAgain } = show(route);
  const plan = await box("plan");
  const later = Date.now() + LATER_MS;
  vi.spyOn(Date, "now").mockReturnValue(later);
  vi.stubGlobal("fetch", async () => problem(500, "no store"));
  await act(readAgain);
  await screen.findByText("no store");
  expect(await box("plan")).toBe(plan);
  serve();
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  await waitFor(() => expect(screen.queryByText("no store")).toBeNull());
  expect(await box("plan")).toBe(plan);
});

test("a graph that could not be read is read on request", async () => {
  vi.stubGlobal("fetch", async () => problem(500, "no store"));
  show("/apps/notes/graphs/main");
  await screen.findByText("no store");
  serve();
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  await box("plan");
});

test("an unknown graph is not found", async () => {
  show("/apps/notes/graphs/other");
  await screen.findByText("The host has no such graph, or no such version of it.");
});

test("the graph of a run shows its version and the states of its tasks", async () => {
  events = [
    runStarted(),
    taskStarted("p", 0, 1, { node: "plan" }),
    taskFinished("p", { node: "plan" }),
    runEnded(),
  ].map((event) => (event.type === "run_started" ? { ...event, graph: "main" } : event));
  const { history } = show(`/threads/t1/runs/${RUN}`);
  fireEvent.click(await link("Graph"));
  const plan = await box("plan");
  expect(plan.dataset.status).toBe("done");
  // The version of the run has no such node.
  expect(document.querySelector('[data-node="work"]')).toBeNull();
  fireEvent.click(await item("plan"));
  expect(history.location.href).toBe(`/threads/t1/runs/${RUN}?view=graph&node=plan`);
  fireEvent.click(await link("p"));
  await waitFor(() => expect(history.location.href).toBe(`/threads/t1/runs/${RUN}?at=3`));
});

test("the graph of a run shows which cases of a branch it took", async () => {
  answers.main = [MAIN, { ...MAIN, version: PINNED }];
  events = [
    { ...runStarted(), graph: "main" },
    taskStarted("p", 0, 1, { node: "plan" }),
    taskFinished("p", { node: "plan" }),
    checkpointed(1, { taken: [{ branch: "which", case: 0 }] }),
    runEnded(),
  ];
  show(`/threads/t1/runs/${RUN}?view=graph`);
  fireEvent.click(await item("?which"));
  const panel = await screen.findByRole("complementary", { name: "which" });
  const taken = within(panel).getByRole("link", { name: "taken once" });
  expect(taken.getAttribute("href")).toBe(`/threads/t1/runs/${RUN}?at=4`);
  expect(document.querySelectorAll('g[data-taken="true"]').length).toBe(1);
});

test("the graphs of many parallel tasks are chosen by keys, buttons and the list of tasks", async () => {
  const tasks = Array.from({ length: 9 }, (_, index) => `w${index}`);
  const stepOf = (task: string) => ({ node: "step", namespace: `work:${task}` });
  events = [
    { ...runStarted(), graph: "main" },
    ...tasks.map((task) => taskStarted(task, 0, 1, { node: "work" })),
    ...tasks.map((task) => taskStarted(`s-${task}`, 0, 1, stepOf(task))),
    ...tasks.filter((task) => task !== "w6").map((task) => taskFinished(task, { node: "work" })),
    { ...taskFailed("w6"), node: "work" },
    runEnded("failed"),
  ];
  versions = versions.filter((it) => it.is_current);
  show(`/threads/t1/runs/${RUN}?view=graph&node=work`);
  const work = await item("work");
  expect(work.textContent).not.toContain("shown");
  fireEvent.keyDown(work, { key: "n" });
  fireEvent.keyDown(work, { key: "o" });
  await waitFor(() => expect(work.textContent).toContain("1–4 shown"));
  expect(document.querySelectorAll('[data-node="step"]')).toHaveLength(4);
  fireEvent.keyDown(work, { key: "n" });
  await waitFor(() => expect(work.textContent).toContain("5–8 shown"));
  fireEvent.click(screen.getByRole("button", { name: "Show later tasks of work" }));
  await waitFor(() => expect(work.textContent).toContain("9–9 shown"));
  fireEvent.keyDown(work, { key: "n" });
  fireEvent.keyDown(work, { key: "p" });
  await waitFor(() => expect(work.textContent).toContain("5–8 shown"));
  fireEvent.keyDown(work, { key: "p" });
  // The failed task is the first one of the list.
  const list = await screen.findByRole("region", { name: "Tasks" });
  const [first] = within(list).getAllByRole("button");
  expect(first?.getAttribute("aria-label")).toBe("Show the graph of w6");
  await waitFor(() => expect(first?.getAttribute("aria-pressed")).toBe("false"));
  fireEvent.click(first as HTMLElement);
  await waitFor(() => expect(work.textContent).toContain("5–8 shown"));
  expect(first?.getAttribute("aria-pressed")).toBe("true");
});

test("a node of a run is tried for the tenant of the run", async () => {
  events = [{ ...runStarted(), graph: "main" }, runEnded()];
  versions = versions.filter((it) => it.is_current);
  show(`/threads/t1/runs/${RUN}?view=graph&node=plan&tenant=acme`);
  const tried = await link("Try in the playground");
  expect(tried.getAttribute("href")).toBe("/apps/notes/play?graph=main&node=plan&tenant=acme");
});

test("the address of the graph of a run has the open nested graphs", async () => {
  versions = versions.filter((it) => it.is_current);
  events = [{ ...runStarted(), graph: "main" }, runEnded()];
  const route = `/threads/t1/runs/${RUN}?view=graph`;
  const { history } = show(route);
  fireEvent.keyDown(await item("work"), { key: "o" });
  await item("step");
  expect(history.location.href).toBe(`${route}&open=work`);
  fireEvent.click(await item("plan"));
  const { href } = history.location;
  expect(href).toBe(`${route}&open=work&node=plan`);
  cleanup();
  const { history: other } = show(href);
  // What is around the selected item is open without being named.
  fireEvent.click(await item("step"));
  expect(other.location.href).toBe(`${route}&node=work%2Fstep`);
  fireEvent.keyDown(await item("work"), { key: "o" });
  expect(other.location.href).toBe(`${route}&open=*&node=work%2Fstep`);
});

test("the graph of a run whose version is gone is the current one", async () => {
  versions = versions.filter((it) => it.is_current);
  const taken = [{ branch: "which", case: 0 }];
  events = [{ ...runStarted(), graph: "main" }, checkpointed(1, { taken }), runEnded()];
  show(`/threads/t1/runs/${RUN}?view=graph`);
  await box("work");
  // Its cases may be others than those of the run.
  expect(document.querySelector('g[data-taken="true"]')).toBeNull();
  screen.getByText(/does not have the version of this run/);
});
