// An operator who migrates a thread to the current code, cancels a run, settles the call that was
// cut off, forks from a checkpoint, drains another run, edits its state and resumes it; see
// `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { panel } from "./studio.ts";
import { eventually, order, run, type Visit, valueAt } from "./visit.ts";

/** A thread of the former code, and two threads whose runs wait for a service. */
const FORMER = "former";
const [FIRST, SECOND] = ["errand-1", "errand-2"];

/** What the service would have returned to the call that the cancel cuts off. */
const RESULT = { status: 200, headers: [], body: { text: "settled" }, url: "http://service/" };

const dialog = (page: Page) => page.getByRole("dialog");

const button = (within: Page | Locator, name: string) =>
  within.getByRole("button", { name, exact: true });

async function open({ page, url }: Visit, thread: string): Promise<void> {
  await page.goto(new URL(`/studio/threads/${thread}`, url).href);
  await page.getByRole("heading", { name: thread, exact: true }).waitFor();
}

/** Migrates the thread, once the report says that nothing prevents it. */
async function migrate(visit: Visit): Promise<void> {
  const { page } = visit;
  await open(visit, FORMER);
  const migration = button(page, "Migrate to the current code…");
  await migration.click();
  await dialog(page)
    .getByText("The current graph has no channel note, which has a value.")
    .waitFor();
  const confirm = button(dialog(page), "Migrate the thread");
  assert.ok(await confirm.isDisabled());
  await visit.look("control-obstacle");
  await dialog(page)
    .getByLabel(/^Drop the values/)
    .check();
  await dialog(page).getByText("The value of channel note is dropped.").waitFor();
  await visit.look("control-migrate");
  await eventually(async () => assert.ok(await confirm.isEnabled()));
  await confirm.click();
  await dialog(page).waitFor({ state: "detached" });
  await migration.waitFor({ state: "detached" });
}

/** Cancels the first run after a question, by keyboard up to the question. */
async function cancel(visit: Visit): Promise<void> {
  const { page } = visit;
  await open(visit, FIRST);
  await button(page, "Cancel").waitFor();
  await page.keyboard.press("a");
  await button(page, "Drain").and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await dialog(page).waitFor();
  await visit.look("control-cancel");
  await button(dialog(page), "Do nothing").click();
  await button(page, "Cancel").and(page.locator(":focus")).waitFor();
  assert.equal(visit.sent.length, 3, "only the migration was sent");
  await page.keyboard.press("Enter");
  await button(dialog(page), "Cancel the run").click();
  await page.getByText("cancelled", { exact: true }).waitFor();
  // What the run has not done can be continued.
  await button(page, "Resume").waitFor();
}

/** Settles the call that was cut off, and resumes: the run goes on with the given result. */
async function settle(visit: Visit): Promise<void> {
  const { page } = visit;
  const call = page.getByRole("list", { name: "Calls in doubt" }).getByRole("listitem");
  await call.getByText("Not settled").waitFor();
  await button(call, "Settle").click();
  await call.getByLabel("Result of the call").fill(JSON.stringify(RESULT));
  await visit.look("control-settle");
  await button(call, "Settle the call").click();
  await call.getByText("Settled: it returned the given result").waitFor();
  await button(page, "Resume").click();
  await page.waitForURL(/\/threads\/errand-1\/runs\/[^/?]+$/);
  await page.getByText("completed", { exact: true }).waitFor();
}

/** Forks the run from the checkpoint after its first superstep. */
async function fork(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.locator('[data-kind="step"]').getByRole("link").first().click();
  await button(panel(page), "Fork from this checkpoint").click();
  await panel(page).getByLabel("Input (optional)").waitFor();
  await visit.look("control-fork");
  await button(panel(page), "Start the fork").click();
  await page.waitForURL(/\/studio\/compare\?/);
  const copy = page.getByRole("region", { name: "Right run", exact: true });
  await copy.getByText("completed", { exact: true }).waitFor();
}

/** Drains the second run, which then stops before its second superstep. */
async function drain(visit: Visit): Promise<void> {
  const { page } = visit;
  await open(visit, SECOND);
  await button(page, "Drain").click();
  await page.getByText("The run stops before its next superstep.").waitFor();
  await order("open");
  await button(page, "Resume").waitFor();
  await visit.look("control-thread");
}

/** Edits a channel with a schema by keyboard. */
async function edit(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.keyboard.press("e");
  const author = page.getByLabel("Write as", { exact: true });
  await author.and(page.locator(":focus")).waitFor();
  assert.equal(await author.inputValue(), "call_then_wait");
  await page.getByRole("checkbox", { name: "number", exact: true }).check();
  const number = page.getByRole("textbox", { name: "number", exact: true });
  assert.equal(await number.inputValue(), "0");
  await number.fill("-1");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Some values do not fit their channels.").waitFor();
  await visit.look("control-edit");
  await number.fill("41");
  await page.keyboard.press("Control+Enter");
  await dialog(page)
    .getByText(/written as call_then_wait/)
    .waitFor();
  await visit.look("control-review");
  await button(dialog(page), "Write the edit").click();
  await page.getByText(/^The edit made checkpoint/).waitFor();
  await author.waitFor({ state: "detached" });
}

/** From a thread of former code to a run that goes on from an edited state. */
async function steers(visit: Visit): Promise<void> {
  const { page } = visit;
  await migrate(visit);
  await cancel(visit);
  await settle(visit);
  await fork(visit);
  await drain(visit);
  await edit(visit);
  await button(page, "Resume").click();
  await page.waitForURL(/\/threads\/errand-2\/runs\/[^/?]+$/);
  await page.getByText("completed", { exact: true }).waitFor();
  const paths = visit.sent.map(([, path]) => path.replace(/\/runs\/[^/]+\//, "/runs/*/"));
  assert.deepEqual(paths, [
    ...Array(3).fill(`/api/v1/threads/${FORMER}/migrate`),
    "/api/v1/runs/*/cancel",
    `/api/v1/threads/${FIRST}/settle`,
    `/api/v1/threads/${FIRST}/resume`,
    `/api/v1/threads/${FIRST}/fork`,
    `/api/v1/threads/${SECOND}/runs/*/drain`,
    `/api/v1/threads/${SECOND}/edits`,
    `/api/v1/threads/${SECOND}/resume`,
  ]);
  assert.deepEqual(valueAt(visit.sent, 4, 2, "decision"), { kind: "answer", answer: RESULT });
  assert.equal(valueAt(visit.sent, 6, 2, "copy"), true);
  const edited = valueAt(visit.sent, 8, 2, "supersteps", 0, 0);
  assert.deepEqual(edited, {
    as_node: "call_then_wait",
    values: { number: 41 },
    overwrite: ["number"],
  });
}

await run({ steers });
