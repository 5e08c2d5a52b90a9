// A user of the studio: login, navigation, keys, and the lists of threads and runs; see `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { KEY, logIn, main, panel } from "./studio.ts";
import {
  both,
  comesTo,
  eventually,
  isTitled,
  onPhone,
  order,
  parameter,
  run,
  textOf,
  type Visit,
} from "./visit.ts";

/** The id of a thread as the studio shows it. The character that reverses text is visible. */
const HOSTILE = "<img src=x onerror=alert(1)> [U+202E]gnp";

const LOST = "Connection lost. Reconnecting…";

const row = (page: Page, name: string) => page.getByRole("link", { name, exact: true });

/** Apps, threads, a thread, a deep link and the way back. */
async function shows(visit: Visit): Promise<void> {
  const { page } = visit;
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  await page.locator('[data-app="misdeeds"]').waitFor();
  await page.getByText("Everything was loaded.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Log out" }).count(), 0, "there are no keys");
  await visit.look("studio-home");
  await main(page).getByRole("link", { name: "Threads" }).click();
  await row(page, "plain").waitFor();
  await row(page, HOSTILE).waitFor();
  await isTitled(page, /^Threads – Wattle studio$/);
  await visit.look("studio-threads");
  await visit.lookWide("studio-threads");
  await page.getByLabel("Status").selectOption("error");
  await page.getByText("No thread matches the filters.").waitFor();
  await page.waitForURL(/\/studio\/threads\?status=error$/);
  await page.reload();
  await page.getByText("No thread matches the filters.").waitFor();
  await page.getByRole("link", { name: "Clear filters" }).last().click();
  await row(page, HOSTILE).click();
  await page.getByRole("heading", { name: HOSTILE }).waitFor();
  const metadata = await textOf(page.getByRole("group", { name: "Metadata" }));
  assert.match(metadata, /<script>alert\(2\)<\/script>/);
  assert.equal(await page.locator("#root img, #root script").count(), 0);
  await visit.look("studio-thread");
  await visit.lookWide("studio-thread");
  // The address of a thread leads to it, in another tab, too.
  const other = await visit.tab(page.url());
  await other.getByRole("heading", { name: HOSTILE }).waitFor();
  await other.close();
  await page.goBack();
  await row(page, "plain").waitFor();
  await page.goto(`${visit.url}nowhere`);
  await page.getByText("Nothing is at this address").waitFor();
  await visit.look("studio-nowhere");
  assert.deepEqual(visit.sent, [], "reading changes nothing");
}

/** The root of the host leads to the studio, and everything is within reach of the keyboard. */
async function enters(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.waitForURL(/\/studio\/$/);
  await page.locator('[data-app="misdeeds"]').waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Go to Threads").waitFor();
  await visit.look("studio-keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await row(page, "plain").waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "INPUT");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const chosen = await page.evaluate(() => document.activeElement?.textContent ?? "");
  assert.ok([HOSTILE, "plain"].includes(chosen), `a row has the focus: ${chosen}`);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: chosen, exact: true }).waitFor();
}

/** A wrong key, a right one, a reload, another tab, and the way out of both. */
async function logsIn(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 401/);
  await page.getByLabel("API key").waitFor();
  await visit.look("studio-login");
  await logIn(page, "wrong");
  await page.getByRole("alert").getByText("The host refused the key").waitFor();
  await visit.look("studio-refused");
  await logIn(page, KEY);
  await page.locator('[data-app="misdeeds"]').waitFor();
  await page.reload();
  await page.locator('[data-app="misdeeds"]').waitFor();
  const other = await visit.tab(`${visit.url}threads`);
  await row(other, "plain").waitFor();
  assert.ok(!page.url().includes(KEY) && !other.url().includes(KEY));
  const kept = await page.evaluate(() => document.cookie + JSON.stringify(localStorage));
  assert.ok(!kept.includes(KEY), "the key is in no cookie and not in `localStorage`");
  await other.getByRole("button", { name: "Log out" }).click();
  await other.getByLabel("API key").waitFor();
  await page.getByLabel("API key").waitFor();
  await other.close();
  assert.deepEqual(visit.sent, [], "a login changes nothing");
}

/** The names of buttons that change something in the views of threads, runs and questions. */
const CHANGES = /^(Approve|Cancel|Drain|Edit|Fork|Migrate|Reject|Resume|Retry what|Send|Settle)/;

/** Whether a view has nothing that changes something. */
async function changesNothing(page: Page): Promise<void> {
  const buttons = page.getByRole("button", { name: CHANGES });
  assert.deepEqual(await buttons.allTextContents(), [], "the key may only read");
  assert.equal(await page.getByRole("group", { name: "Actions", exact: true }).count(), 0);
}

/** The addresses of a thread, of a call that failed, and of the inbox. */
async function readsByAddress(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.goto(new URL("threads/refused", visit.url).href);
  const runs = page.getByRole("list", { name: "Runs, newest first" });
  await runs.getByRole("link").waitFor();
  await changesNothing(page);
  await runs.getByRole("link").click();
  const failed = page.locator('[data-kind="call"][data-status="failed"]').getByRole("link");
  await failed.last().click();
  await page.waitForURL(/[?&]at=\d+$/);
  await page.reload();
  await panel(page).getByRole("group", { name: "Failure" }).waitFor();
  await changesNothing(page);
  await page.goto(new URL("inbox", visit.url).href);
  await page.getByRole("list", { name: "Pending questions" }).getByRole("link").click();
  await page.getByText("Your key may read questions and not answer them.").waitFor();
  await changesNothing(page);
}

/** A key that can only read: what is for the operator is hidden and not asked for. */
async function reads(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 401/);
  await logIn(page, parameter(visit.url, "reader"));
  await page.locator('[data-app="misdeeds"]').waitFor();
  assert.equal(await page.getByRole("region", { name: /not loaded/ }).count(), 0);
  await main(page).getByRole("link", { name: "Threads" }).click();
  await row(page, "plain").waitFor();
  await visit.look("studio-reader");
  await readsByAddress(visit);
  assert.deepEqual(visit.sent, [], "reading changes nothing");
}

/** Waits until the list has these threads and no others. */
const lists = (page: Page, ...names: string[]): Promise<void> =>
  eventually(async () => {
    const links = page.locator("tr[data-index] td:first-child a");
    assert.deepEqual(await links.allTextContents(), names);
  });

/** Enters a value of a filter, which has an effect with Enter. */
async function enter(page: Page, label: string, value: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(value);
  await page.keyboard.press("Enter");
}

/** The address of the run that failed, with its tenant. */
const OF_GLOBEX = /\/threads\/order-2\/runs\/[^/]+\?tenant=globex$/;

/** Waits until a page shows why the run failed. */
const hasFailed = (page: Page): Promise<void> =>
  page.getByRole("alert").getByText("no such order").waitFor();

/** The run that failed is found among those of all threads, and leads to its timeline. */
async function findsRun(visit: Visit): Promise<void> {
  const { page } = visit;
  await main(page).getByRole("link", { name: "Runs" }).click();
  await page.getByRole("columnheader", { name: "Tenant" }).waitFor();
  const runs = page.locator("tr[data-index]");
  await page.getByText("More filters").click();
  await enter(page, "Metadata", "customer=7");
  await comesTo(runs, 2);
  await enter(page, "Metadata", "");
  await page.getByLabel("Status").selectOption({ label: "failed (1)" });
  await comesTo(runs, 1);
  await runs.getByText("misdeed", { exact: true }).waitFor();
  await runs.getByRole("link", { name: "order-2" }).waitFor();
  await visit.look("studio-runs");
  await visit.lookWide("studio-runs");
  await runs.getByRole("link").first().click();
  await page.waitForURL(OF_GLOBEX);
  await hasFailed(page);
  // The address of a run leads to it, in another tab, too.
  const other = await visit.tab(page.url());
  await hasFailed(other);
  await other.close();
  // The address that a user of the tenant sees does not name the tenant.
  const { origin, pathname } = new URL(page.url());
  await page.goto(origin + pathname);
  await page.getByRole("heading", { name: "Choose a tenant" }).waitFor();
  await visit.look("studio-tenant");
  await enter(page, "Tenant", "globex");
  await page.waitForURL(OF_GLOBEX);
  await hasFailed(page);
}

/** With the key of a tenant, what belongs to another one is not listed and not found. */
async function findsOwn(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 404/);
  await page.getByRole("button", { name: "Log out" }).click();
  await logIn(page, parameter(visit.url, "globex"));
  await hasFailed(page);
  await main(page).getByRole("link", { name: "Threads" }).click();
  await lists(page, "order-2");
  await main(page).getByRole("link", { name: "Runs" }).click();
  await comesTo(page.locator("tr[data-index]"), 1);
  await page.goto(new URL("threads/order-1", visit.url).href);
  const missing = "There is no such thread, or it belongs to another tenant.";
  await page.getByRole("alert").getByText(missing).waitFor();
}

/**
 * An operator finds the threads of all tenants by each kind of filter, in the address, too, and
 * sees what changes. A tenant finds its own.
 */
async function finds(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 401/);
  await logIn(page, KEY);
  await main(page).getByRole("link", { name: "Threads" }).click();
  await row(page, "order-1").waitFor();
  await page.getByRole("columnheader", { name: "Tenant" }).waitFor();
  const status = page.getByLabel("Status");
  await status.getByRole("option", { name: "All (112)" }).waitFor({ state: "attached" });
  await visit.look("studio-tenants");
  // The next page is read at the end of the list.
  const list = page.locator("[data-list]");
  await eventually(async () => {
    await list.evaluate((box) => box.scrollTo(0, box.scrollHeight));
    assert.equal(await page.locator('tr[data-index="111"]').count(), 1);
  });
  await status.selectOption({ label: "error (1)" });
  await lists(page, "order-2");
  await page.locator("tr[data-index]").getByText("misdeed", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Clear filters" }).click();
  await row(page, "order-1").waitFor();
  // The text has an effect after a pause.
  await page.getByLabel("Search").fill("GREEN tea");
  await lists(page, "order-1");
  await page.waitForURL(/\?text=GREEN\+tea$/);
  await enter(page, "Search", "");
  await page.getByText("More filters").click();
  await enter(page, "Metadata", "customer");
  await page.getByText("This is none: customer").waitFor();
  await visit.look("studio-filters");
  await enter(page, "Metadata", 'customer=8, note="Milk, warm"');
  await lists(page, "order-2");
  await page.reload();
  await lists(page, "order-2");
  await enter(page, "Metadata", "");
  await enter(page, "Updated since", "2025-01-15T10:35");
  await lists(page, "order-1", "order-2");
  await enter(page, "Updated until", "2025-01-15T10:45");
  await lists(page, "order-2");
  await enter(page, "Updated until", "");
  await enter(page, "Failure code", "timeout");
  await page.getByText("No thread matches the filters.").waitFor();
  await enter(page, "Failure code", "");
  await enter(page, "Tenant", "acme");
  await lists(page, "order-1");
  await order("run");
  await page.locator("tr[data-marked]", { hasText: "order-1" }).waitFor();
  await comesTo(page.locator("tr[data-marked]"), 0);
  // The request for the thread names its tenant.
  await row(page, "order-1").click();
  await page.getByRole("heading", { name: "order-1" }).waitFor();
  await page.getByRole("group", { name: "Metadata" }).getByText("Green tea").waitFor();
  await findsRun(visit);
  await findsOwn(visit);
  assert.deepEqual(visit.sent, [], "a search changes nothing");
}

/** The server is away: the studio says so, keeps what it shows, and continues when it is back. */
async function away(visit: Visit): Promise<void> {
  const { page } = visit;
  await main(page).getByRole("link", { name: "Threads" }).click();
  await row(page, "plain").waitFor();
  await visit.away();
  await page.getByText(LOST).waitFor();
  await row(page, "plain").waitFor();
  await visit.look("studio-away");
  await visit.back();
  await page.getByText(LOST).waitFor({ state: "detached" });
  await comesTo(page.getByRole("alert"), 0);
}

await run({
  shows: both(shows),
  enters,
  logs_in: logsIn,
  reads: onPhone(reads),
  finds,
  away,
});
