// An operator who migrates a thread to the current code, cancels a run, drains another one, edits
// its state and resumes it; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { eventually, order, run, type Visit, valueAt } from "./visit.ts";

/** A thread of the former code, and two threads whose runs wait for a service. */
const FORMER = "former";
const [FIRST, SECOND] = ["errand-1", "errand-2"];

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
  await drain(visit);
  await edit(visit);
  await button(page, "Resume").click();
  await page.waitForURL(/\/threads\/errand-2\/runs\/[^/?]+$/);
  await page.getByText("completed", { exact: true }).waitFor();
  const paths = visit.sent.map(([, path]) => path.replace(/\/runs\/[^/]+\//, "/runs/*/"));
  assert.deepEqual(paths, [
    ...Array(3).fill(`/api/v1/threads/${FORMER}/migrate`),
    "/api/v1/runs/*/cancel",
    `/api/v1/threads/${SECOND}/runs/*/drain`,
    `/api/v1/threads/${SECOND}/edits`,
    `/api/v1/threads/${SECOND}/resume`,
  ]);
  const edited = valueAt(visit.sent, 5, 2, "supersteps", 0, 0);
  assert.deepEqual(edited, {
    as_node: "call_then_wait",
    values: { number: 41 },
    overwrite: ["number"],
  });
}

await run({ steers });
