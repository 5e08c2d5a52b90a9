// An operator who looks after a host in the studio; see `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { KEY, logIn } from "./studio.ts";
import { comesTo, run, textOf, type Visit } from "./visit.ts";

/** A moment after the start of the host, whose clock the test sets. */
const NOW = new Date("2025-01-15T02:30:50Z");

const part = (page: Page, name: string) => page.getByRole("region", { name, exact: true });

/** Goes to a part of the operation, and waits until it is shown. */
async function goTo(page: Page, name: string) {
  const parts = page.getByRole("navigation", { name: "Parts of the operation" });
  await parts.getByRole("link", { name, exact: true }).click();
  await part(page, name).waitFor();
}

/** Creates a key, keeps it, and revokes it. */
async function createsKey(visit: Visit): Promise<void> {
  const { page } = visit;
  await goTo(page, "Keys");
  await page.getByText("No key was created.").waitFor();
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name").fill("ops");
  await page.getByLabel("Permits").selectOption("read");
  await visit.look("operations-new-key");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const made = page.getByRole("region", { name: "The new key" });
  await made.waitFor();
  const secret = await textOf(made.locator("code"));
  await made.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await made.getByRole("button", { name: "I have kept it" }).click();
  await made.waitFor({ state: "detached" });
  assert.ok(!(await page.content()).includes(secret), "the key is shown once");
  await page.getByRole("button", { name: "Revoke ops" }).click();
  await visit.look("operations-revoke");
  const question = page.getByRole("dialog", { name: "Revoke ops?" });
  await question.getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByText("No key was created.").waitFor();
  const sent = visit.sent.map(([method, path]) => `${method} ${path.replace(/[^/]+$/, "")}`);
  assert.deepEqual(sent, ["POST /api/v1/", "DELETE /api/v1/keys/"]);
}

/** Tokens and cost, and the numbers of each app, model and tenant. */
async function groups(page: Page): Promise<void> {
  const numbers = (name: string) => page.getByRole("table", { name, exact: true });
  const heading = (table: string, name: string | RegExp) =>
    numbers(table).getByRole("columnheader", { name });
  await heading("Tokens by time", /^Input \(\d/).waitFor();
  await heading("Cost by time", /^Cost \(\d/).waitFor();
  const each = page.getByLabel("Each");
  await each.selectOption("app");
  await heading("Runs by time", "misdeeds (5)").waitFor();
  await page.waitForURL(/\/studio\/operations\?by=app$/);
  await each.selectOption("model");
  await heading("Tokens by time", /^chat \(\d/).waitFor();
  assert.equal(await numbers("Runs by time").count(), 0, "a run has no model");
  await each.selectOption("tenant");
  await heading("Runs by time", "Without a tenant (5)").waitFor();
}

/** What the host did, what it does next, and what it takes. */
async function operates(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.clock.setFixedTime(NOW);
  visit.expect(/status of 401/);
  await logIn(page, KEY);
  await page.locator('[data-app="misdeeds"]').waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await part(page, "Statistics").waitFor();
  const plot = page.getByRole("img", { name: "Runs over time: last day", exact: true });
  await plot.locator("canvas").waitFor();
  const runs = page.getByRole("table", { name: "Runs by time", exact: true });
  // The heading, and the only interval with runs.
  await comesTo(runs.getByRole("row"), 2);
  await runs.getByRole("columnheader", { name: "Failed (2)" }).waitFor();
  const frame = page.getByRole("group", { name: "Runs by time", exact: true });
  const hidden = await frame.evaluate((box) => box.scrollWidth - box.clientWidth);
  assert.equal(hidden, 0, "each column can be seen");
  await visit.look("operations-statistics");
  await visit.lookWide("operations-statistics");
  await groups(page);
  await goTo(page, "Limits reached");
  const limits = page.getByRole("table", { name: "Limits that runs reached" });
  await limits.getByRole("cell", { name: "output", exact: true }).waitFor();
  await page.getByRole("cell", { name: "other", exact: true }).waitFor();
  await visit.look("operations-limits");
  await goTo(page, "Hosts");
  await page.getByText("(this host)").waitFor();
  await visit.look("operations-hosts");
  await goTo(page, "Queue");
  const queue = page.getByRole("table", { name: "Pending runs" });
  await comesTo(queue.getByRole("row"), 2);
  await visit.look("operations-queue");
  await goTo(page, "Crons");
  await page.getByRole("heading", { name: "0 9 * * *" }).waitFor();
  await page.getByText("none yet").waitFor();
  await visit.look("operations-crons");
  await goTo(page, "Webhooks");
  await page.getByText("https://hooks.example/<x>").waitFor();
  await page.getByText("The run has not ended.").waitFor();
  await visit.look("operations-webhooks");
  await page.getByRole("radio", { name: "Abandoned" }).check();
  await page.getByText("No webhook was abandoned in the last 30 days.").waitFor();
  await goTo(page, "Store");
  await page.getByRole("table", { name: "By app" }).waitFor();
  await page.getByRole("cell", { name: "without a tenant" }).waitFor();
  await visit.look("operations-store");
  await createsKey(visit);
}

await run({ operates });
