// A user who looks at the graph of an app in the studio, watches a run of it, and compares its
// version with a newer one; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { closePanel, main, panel, viewOfRun } from "./studio.ts";
import { comesTo, eventually, order, parameter, run, textOf, type Visit } from "./visit.ts";

const THREAD = "errands-1";

const box = (page: Page, id: string): Locator => page.locator(`[data-node="${id}"]`);
const item = (page: Page, id: string): Locator => box(page, id).locator("button").first();

/** Waits until all boxes of a node, of which there are `count`, are in a state. */
const areAll = (page: Page, id: string, status: string, count = 1): Promise<void> =>
  comesTo(page.locator(`[data-node="${id}"][data-status="${status}"]`), count);

/** Waits until an item has the focus. */
const hasFocus = (page: Page, id: string): Promise<void> =>
  item(page, id).and(page.locator(":focus")).waitFor();

/** From home to an app and its graph: schemas, conditions and the nested graph, by keys. */
async function explores(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.locator('[data-app="misdeeds"]').getByRole("link", { name: "misdeeds" }).click();
  await page.getByRole("heading", { name: "misdeeds", exact: true }).waitFor();
  await visit.look("studio-app");
  const graphs = page.getByRole("list", { name: "Graphs" });
  await graphs.getByRole("link", { name: "errands", exact: true }).click();
  await item(page, "spread").click();
  await panel(page).getByRole("group", { name: "Input schema" }).waitFor();
  await page.waitForURL(/\/graphs\/errands\?node=spread$/);
  await visit.look("studio-graph-node");
  await closePanel(page);
  await item(page, "?which").click();
  const cases = panel(page).getByRole("region", { name: "Cases" });
  assert.match(await textOf(cases), /state\.number > 100 → END.*otherwise → counter/);
  await closePanel(page);
  await item(page, "[start]").focus();
  await page.keyboard.press("ArrowDown");
  await hasFocus(page, "spread");
  await page.keyboard.press("ArrowDown");
  await hasFocus(page, "errand");
  await page.keyboard.press("o");
  await item(page, "call_then_wait").waitFor();
  await visit.look("studio-graph");
  await visit.lookWide("studio-graph");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await hasFocus(page, "call_then_wait");
  await page.keyboard.press("Enter");
  await panel(page).getByRole("group", { name: "Output schema" }).waitFor();
  // The address opens the nested graph.
  const other = await visit.tab(page.url());
  await panel(other).getByRole("group", { name: "Output schema" }).waitFor();
  await other.close();
  await closePanel(page);
}

/** Starts a run beside the page, whose two parallel tasks wait for a service. */
async function startRun(visit: Visit): Promise<void> {
  const input = { route: "chat", url: parameter(visit.url, "held") };
  const groups = [{ node: "errand", input, tasks: 2 }];
  const response = await fetch(new URL("/api/v1/apps/misdeeds/runs", visit.url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ graph: "errands", input: { groups }, thread_id: THREAD }),
  });
  assert.equal(response.status, 202);
  await order("arrived");
}

/** A newer version differs from that of the run, whose nested graph is still the older one. */
async function compares(visit: Visit): Promise<void> {
  const { page } = visit;
  await order("rewrite");
  await page.goto(new URL("/studio/apps/misdeeds/graphs/errands", visit.url).href);
  // The versions are the newest one and that of the run.
  await page.getByLabel("Compare with").selectOption({ index: 2 });
  const list = page.getByRole("list", { name: "Differences" });
  await list.getByText("Added: node trap").waitFor();
  assert.equal(await box(page, "trap").getAttribute("data-mark"), "added");
  assert.equal(await box(page, "?which").getAttribute("data-mark"), "changed");
  await item(page, "?which").click();
  const changes = panel(page).getByRole("list", { name: "Changes" });
  await changes.getByText("definition.cases[0].when").waitFor();
  await visit.look("studio-graph-changes");
  await closePanel(page);
  // The nested graph shows its own differences.
  assert.equal(await box(page, "errand").getAttribute("data-mark"), "changed");
  await page.getByRole("button", { name: "Open nested graphs" }).click();
  await list.getByText("Added: node errand/spin").waitFor();
  assert.equal(await box(page, "spin").getAttribute("data-mark"), "added");
  assert.equal(await box(page, "call_then_wait").getAttribute("data-mark"), null);
  await visit.look("studio-graph-compared");
  await page.getByRole("button", { name: "Close nested graphs" }).click();
  await page.getByLabel("Version", { exact: true }).selectOption({ index: 1 });
  await page.getByText("The graph and the code of its nodes are the same").waitFor();
  await page.getByLabel("Compare with").selectOption({ index: 0 });
  await page.getByRole("button", { name: "Open nested graphs" }).click();
  await item(page, "call_then_wait").waitFor();
  assert.equal(await box(page, "spin").count(), 0);
}

/** A newcomer goes from the apps to a graph, and watches it light up. */
async function lightsUp(visit: Visit): Promise<void> {
  const { page } = visit;
  await explores(visit);
  await startRun(visit);
  await main(page).getByRole("link", { name: "Threads" }).click();
  await page.getByRole("link", { name: THREAD, exact: true }).click();
  await page.getByRole("list", { name: "Runs, newest first" }).getByRole("link").click();
  await viewOfRun(page, "Graph").click();
  await areAll(page, "spread", "done");
  await areAll(page, "errand", "running");
  await box(page, "errand").getByText("2 of 2 tasks running").waitFor();
  await page.getByRole("button", { name: "Open nested graphs" }).click();
  // The graphs of parallel tasks are side by side.
  await areAll(page, "call_then_wait", "running", 2);
  const [left, right] = await page.locator('[data-node="call_then_wait"]').all();
  const boxes = [await left?.boundingBox(), await right?.boundingBox()];
  assert.ok(boxes[0] && boxes[1] && boxes[0].y === boxes[1].y && boxes[0].x < boxes[1].x);
  await visit.look("studio-graph-live");
  await order("open");
  await areAll(page, "call_then_wait", "done", 2);
  await areAll(page, "errand", "done");
  await areAll(page, "counter", "done");
  await page.getByText("completed", { exact: true }).waitFor();
  await visit.look("studio-graph-ended");
  // The graphs in an opened node cover its middle.
  await item(page, "errand").click({ position: { x: 30, y: 20 } });
  const tasks = panel(page).getByRole("region", { name: "Tasks" }).getByRole("link");
  await comesTo(tasks, 2);
  await visit.look("studio-graph-tasks");
  await tasks.first().click();
  await page.waitForURL(/[?&]at=\d+/);
  await eventually(async () => {
    assert.equal(await page.locator('tr[aria-current="true"] [data-kind="task"]').count(), 1);
  });
  await compares(visit);
  assert.deepEqual(visit.sent, [], "watching changes nothing");
}

await run({ lights_up: lightsUp });
