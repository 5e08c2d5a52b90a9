// A user who watches a run in the studio, live and afterwards; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Standin } from "./standin.ts";
import { closePanel, panel, viewOfRun } from "./studio.ts";
import {
  both,
  comesTo,
  downloaded,
  eventually,
  isTitled,
  onPhone,
  order,
  parameter,
  run,
  textOf,
  type Visit,
} from "./visit.ts";

/** What the model says. It is streamed in pieces, of which the test holds back all but the first. */
const ANSWER = "Wattles are trees that bloom in winter.";

const LOST = "Connection lost. Reconnecting…";

const INTERRUPTED = "Live updates are interrupted. Reconnecting…";

const rows = (page: Page, kind: string) => page.locator(`[data-kind="${kind}"]`);
const calls = (page: Page) => rows(page, "call");
const asks = (page: Page) => calls(page).filter({ hasText: /llm\.complete/ });
const streamed = (page: Page) => panel(page).getByRole("group", { name: "Streamed text" });
const says = (locator: Locator, text: string) =>
  eventually(async () => assert.equal(await textOf(locator), text));

/** The address of a view of the studio. */
function viewOf(visit: Visit, route: string): string {
  return new URL(`/studio/${route}`, visit.url).href;
}

/** Starts a run beside the page, and returns the route of its view. */
async function startRun(visit: Visit): Promise<string> {
  const input = { messages: [{ role: "user", content: "hello" }] };
  const response = await fetch(new URL("/api/v1/apps/desk/runs", visit.url), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ graph: "chat", input }),
  });
  assert.equal(response.status, 202);
  const { thread, run: id } = (await response.json()) as { thread: string; run: string };
  return `threads/${thread}/runs/${id}`;
}

/** What the rows show, but for times. */
async function shown(page: Page): Promise<unknown[]> {
  return await page.locator("[data-kind]").evaluateAll((cells) =>
    cells.map((cell) => {
      const { kind, status } = (cell as HTMLElement).dataset;
      return [kind, status, cell.querySelector("a")?.textContent];
    }),
  );
}

/** The number of rows in the log of a run, with the heading. */
const countOfEvents = (page: Page): Promise<string | null> =>
  page.getByRole("table", { name: "Log of the run" }).getAttribute("aria-rowcount");

/** A run streams while its host is killed and started again: the view goes on, with nothing twice. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A host that is not there refuses the connection, and one that starts refuses requests.
  visit.expect(/net::ERR|Failed to fetch|status of 503/);
  await new Standin(visit.url).fault({ fault: { kind: "content", text: ANSWER } });
  await page.goto(viewOf(visit, await startRun(visit)));
  await asks(page).getByRole("link").click();
  await says(streamed(page), ANSWER.slice(0, 8));
  await page.getByText("Live", { exact: true }).waitFor();
  await visit.look("studio-run-live");
  await order("kill");
  await page.getByText(LOST).waitFor();
  await page.getByText(INTERRUPTED).waitFor();
  await says(streamed(page), ANSWER.slice(0, 8));
  await visit.look("studio-run-killed");
  await order("start");
  await page.getByText(LOST).waitFor({ state: "detached" });
  await closePanel(page);
  await comesTo(asks(page), 2);
  await rows(page, "change").getByRole("link", { name: "Recovery" }).waitFor();
  assert.equal(await asks(page).first().getAttribute("data-status"), "lost");
  await comesTo(page.locator('[data-kind="call"][data-status="replayed"]'), 1);
  await asks(page).last().getByRole("link").click();
  await says(streamed(page), ANSWER.slice(0, 8));
  await order("open");
  await says(streamed(page), ANSWER);
  await panel(page).getByRole("group", { name: "Result" }).waitFor();
  await visit.look("studio-run-ended");
  await closePanel(page);
  await page.getByText("completed", { exact: true }).waitFor();
  await page.getByText(INTERRUPTED).waitFor({ state: "detached" });
  await comesTo(asks(page), 2);
  const numbers = await asks(page)
    .getByRole("link")
    .evaluateAll((links) => links.map((link) => (link as HTMLElement).dataset.seq));
  assert.equal(new Set(numbers).size, 2, "each call is there once");
  // The log says the same as the stream said, and has as many events.
  const live = await shown(page);
  await viewOfRun(page, "Log").click();
  await page.getByText("Export or verify the log of the thread, with all its runs").click();
  await page.getByRole("button", { name: "Verify the log" }).click();
  await page.getByText(/^(All seals fit|The log has no seals)/).waitFor();
  const count = await countOfEvents(page);
  await page.reload();
  await eventually(async () => assert.equal(await countOfEvents(page), count));
  await viewOfRun(page, "Timeline").click();
  await eventually(async () => assert.deepEqual(await shown(page), live));
  await visit.look("studio-run-read");
  assert.deepEqual(visit.sent, [], "watching changes nothing");
}

/** A run that has ended, from its thread to the values of a call of a tool. */
async function reads(visit: Visit): Promise<void> {
  const { page } = visit;
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  await page.goto(viewOf(visit, `threads/${parameter(visit.url, "thread")}`));
  await page.getByRole("list", { name: "Runs, newest first" }).getByRole("link").click();
  // The thread shows the status of the run as well, so only the title tells that the run is there.
  await isTitled(page, /^Run .* – Wattle studio$/);
  await page.getByText("completed", { exact: true }).waitFor();
  const tool = calls(page).getByRole("link", { name: "tools.call", exact: true });
  await tool.waitFor();
  // The agent, its tools and the agent again. The rows come with the pages of the log.
  await eventually(async () => assert.ok((await rows(page, "step").count()) >= 3));
  await visit.look("studio-run");
  await tool.click();
  await page.waitForURL(/[?&]at=\d+$/);
  const request = panel(page).getByRole("group", { name: "Request" });
  assert.match(await textOf(request), /<img src=x onerror=alert\(1\)>/);
  assert.match(await textOf(panel(page).getByRole("group", { name: "Result" })), /<img src=x/);
  assert.equal(await page.locator("#root img").count(), 0);
  await visit.look("studio-run-call");
  await visit.lookWide("studio-run-call");
  // The address leads to the call.
  const other = await visit.tab(page.url());
  await panel(other).getByRole("group", { name: "Request" }).waitFor();
  await other.close();
  await closePanel(page);
  await page.waitForFunction(() => document.activeElement?.textContent === "tools.call");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await request.waitFor();
  await page.goBack();
  await panel(page).waitFor({ state: "detached" });
  // A superstep sums what its tasks took.
  await rows(page, "step").first().getByRole("link").first().click();
  await panel(page).getByText("Time in guests", { exact: true }).waitFor();
  await closePanel(page);
  await page.getByRole("button", { name: "Close all" }).click();
  await comesTo(calls(page), 0);
  // The address says what is closed.
  await page.reload();
  await page.getByRole("button", { name: "Open Superstep 0", exact: true }).waitFor();
  await comesTo(calls(page), 0);
  await page.getByRole("button", { name: "Open all" }).click();
  await tool.waitFor();
  // A run of the past becomes a case.
  const save = page.getByRole("button", { name: "Save as a case…" });
  await save.click();
  await page.getByLabel("Name", { exact: true }).fill("past");
  await visit.look("studio-run-case");
  const [name, line] = await downloaded(page, "Save the case");
  assert.equal(name, "past.jsonl");
  assert.equal(JSON.parse(line).expect["/status"], "completed");
  await save.click();
  await page.getByText("Facts", { exact: true }).click();
  await page.getByText("Time in guests").waitFor();
  await visit.look("studio-run-facts");
  assert.deepEqual(visit.sent, [], "reading changes nothing");
}

await run({
  outlives: onPhone(outlives),
  reads: both(reads),
});
