// An operator who finds the run that failed yesterday, forks it at the call that failed with a
// corrected answer, and compares both runs; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { closePanel, panel } from "./studio.ts";
import { comesTo, eventually, parameter, run, textOf, type Visit, valueAt } from "./visit.ts";

/** What the model should have said. The page must show it as text. */
const CORRECTED = "It says <img src=x onerror=alert(1)>.";

const side = (page: Page, name: string) => panel(page).getByRole("region", { name, exact: true });

/** The rows of a list. Further ones are room for rows that are not rendered. */
const rows = (page: Page) => page.locator("tr[data-index]");

/** The badges of the rows that have this relation. */
const related = (page: Page, relation: string): Locator =>
  rows(page).locator(`td > [data-relation="${relation}"]`).and(page.locator("span"));

/**
 * Finds the run among those of ten thousand threads by what is known of it: it failed, it did so
 * yesterday, and in which app.
 */
async function find(visit: Visit): Promise<void> {
  const { page } = visit;
  const enterTime = async (label: string, name: string) => {
    await page.getByLabel(label, { exact: true }).fill(parameter(visit.url, name));
    await page.keyboard.press("Enter");
  };
  await page.locator('[data-app="desk"]').waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await rows(page).first().waitFor();
  const status = page.getByLabel("Status");
  await status.getByRole("option", { name: "All (10,002)" }).waitFor({ state: "attached" });
  await status.selectOption("error");
  await page.getByText("More filters").click();
  await enterTime("Updated since", "since");
  await enterTime("Updated until", "until");
  await page.waitForURL(/[?&]updated_to_ms=\d/);
  // A thread of another app failed on the same morning, and one of this app on the day after.
  await eventually(async () => {
    const names = await rows(page).locator("td:first-child a").allTextContents();
    assert.deepEqual(names.slice(0, 2), ["yesterday", "order-5"]);
  });
  await page.getByRole("combobox", { name: "App", exact: true }).selectOption("desk");
  await comesTo(rows(page), 1);
  await visit.look("travel-found");
  await rows(page).getByRole("link").click();
  await page.getByRole("heading", { name: "yesterday" }).waitFor();
  await page.getByRole("list", { name: "Runs, newest first" }).getByRole("link").click();
  await page.getByText("failed", { exact: true }).first().waitFor();
}

/** Opens the call that failed, and returns the number of its event. */
async function open(visit: Visit): Promise<number> {
  const { page } = visit;
  const failed = page.locator('[data-kind="call"][data-status="failed"]').getByRole("link");
  await failed.last().click();
  assert.match(await textOf(panel(page).getByRole("group", { name: "Request" })), /messages/);
  const failure = await textOf(panel(page).getByRole("group", { name: "Failure" }));
  assert.match(failure, /the model is confused/);
  await visit.look("travel-call");
  return Number(new URL(page.url()).searchParams.get("at"));
}

/** Forks at the call with what the model should have said. */
async function fork(visit: Visit): Promise<void> {
  const { page } = visit;
  await panel(page).getByRole("button", { name: "Fork with another answer" }).click();
  const editor = panel(page).getByLabel("Result in the fork");
  const answer = JSON.parse(await editor.inputValue());
  await editor.fill("{");
  await panel(page).getByRole("button", { name: "Start the fork" }).click();
  assert.deepEqual(visit.sent, [], "what is no JSON is not sent");
  await editor.fill(JSON.stringify({ ...answer, parts: [{ text: CORRECTED }] }, undefined, 2));
  await visit.look("travel-fork");
  await panel(page).getByRole("button", { name: "Start the fork" }).click();
  await page.waitForURL(/\/studio\/compare\?/);
}

/** Compares both runs. */
async function compare(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("heading", { name: "Compare two runs" }).waitFor();
  const [left, right] = ["Left run", "Right run"].map((name) =>
    page.getByRole("region", { name, exact: true }),
  );
  await left?.getByText("failed", { exact: true }).waitFor();
  await right?.getByText("completed", { exact: true }).waitFor();
  await page.getByText(/^The runs part at llm\./).waitFor();
  await visit.look("travel-compare");
  await visit.lookWide("travel-compare");
  // On a telephone, nothing cuts the failure.
  await page.setViewportSize({ width: 375, height: 720 });
  await eventually(async () => {
    const cut = await left?.evaluate(({ parentElement: heads }) =>
      heads === null ? undefined : heads.scrollHeight - heads.clientHeight,
    );
    assert.ok(cut !== undefined && cut <= 1, `${cut} pixels are cut`);
  });
  await page.setViewportSize(visit.viewport);
  // What the fork has taken over is not shown at first.
  await comesTo(related(page, "carried"), 0);
  await page.getByRole("button", { name: /^Show the \d+ rows before$/ }).click();
  await eventually(async () => assert.ok((await related(page, "carried").count()) > 0));
  await visit.look("travel-compare-all");
  await page.getByRole("button", { name: "Hide what is the same before" }).click();
  await rows(page)
    .getByRole("link", { name: /^llm\./ })
    .last()
    .click();
  await side(page, "Left run").getByRole("group", { name: "Failure" }).waitFor();
  const result = side(page, "Right run").getByRole("group", { name: "Result" });
  assert.ok((await textOf(result)).includes(CORRECTED));
  assert.equal(await page.locator("#root img").count(), 0);
  await visit.look("travel-pair");
  // The address leads to the pair.
  const other = await visit.tab(page.url());
  await side(other, "Right run").getByRole("group", { name: "Result" }).waitFor();
  await other.close();
  await closePanel(page);
}

/** From the list of threads to the comparison of the failed run with the mended one. */
async function mends(visit: Visit): Promise<void> {
  const { page } = visit;
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  await find(visit);
  const seq = await open(visit);
  await fork(visit);
  await compare(visit);
  const [sent, ...others] = visit.sent;
  assert.deepEqual(others, [], "there is one fork");
  assert.deepEqual(sent?.slice(0, 2), ["POST", "/api/v1/threads/yesterday/fork"]);
  assert.equal(valueAt(sent?.[2], "call", "seq"), seq);
  assert.equal(valueAt(sent?.[2], "copy"), true);
}

await run({ mends });
