// A user at the front page; see `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { both, inEnglish, onPhone, run, textOf, type Visit } from "./visit.ts";

const cards = (page: Page) => page.locator("article[data-app]");
const card = (page: Page, name: string) => page.locator(`article[data-app="${name}"]`);
const status = (page: Page, name: string) => textOf(card(page, name).locator("[data-status]"));

/** The known five with their state, whatever else is loaded, examples to copy and to open. */
async function shows(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByText("2 个应用可用").waitFor();
  const names = await cards(page).evaluateAll((cards) => cards.map((it) => it.dataset.app));
  assert.deepEqual(names, ["asset", "reasoning", "expense", "travel", "nl2sql", "notes"]);
  assert.equal(await status(page, "expense"), "可用");
  assert.equal(await status(page, "asset"), "未加载");
  // What an author wrote is text.
  assert.match(await textOf(card(page, "notes")), /<b>Notes<\/b>.*<img src=x onerror=alert\(1\)>/s);
  assert.equal(await page.locator("#root img").count(), 0);
  await visit.look("welcome-apps");
  const copy = card(page, "expense").getByRole("button", { name: "复制：昨天打车花了20元" });
  await copy.focus();
  await page.keyboard.press("Enter");
  await page.getByText("已复制").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "昨天打车花了20元");
  // The page of the application suggests this one only because the URL does.
  await card(page, "expense").getByRole("link", { name: "买书 59.9" }).click();
  await page.getByRole("heading", { name: "记账助手", level: 1 }).waitFor();
  await page.getByRole("button", { name: "买书 59.9" }).waitFor();
  await page.goto(visit.url);
  await card(page, "expense").getByRole("link", { name: "记账助手" }).click();
  await page.getByRole("heading", { name: "记账助手", level: 1 }).waitFor();
  assert.deepEqual(visit.sent, [], "a link has no effect");
}

/**
 * A browser in English gets the page in English. The switch changes the language, which a reload
 * keeps.
 */
async function speaks(visit: Visit): Promise<void> {
  const { page } = visit;
  const language = () => page.locator("html").getAttribute("lang");
  await page.getByText("2 applications are available").waitFor();
  await page.getByRole("button", { name: "Theme: system" }).waitFor();
  assert.deepEqual([await language(), await page.title()], ["en", "Wattle applications"]);
  assert.equal(await status(page, "asset"), "not loaded");
  await visit.look("welcome-english");
  await page.getByRole("radio", { name: "中文" }).check();
  await page.getByText("2 个应用可用").waitFor();
  await page.getByRole("button", { name: "主题：跟随系统" }).waitFor();
  await page.reload();
  await page.getByText("2 个应用可用").waitFor();
  await page.getByRole("button", { name: "主题：跟随系统" }).waitFor();
  assert.deepEqual([await language(), await page.title()], ["zh-CN", "Wattle 应用"]);
}

/** The server is away: what it does and what to try is there all the same. */
async function away(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByText("2 个应用可用").waitFor();
  await visit.away();
  await page.evaluate(() =>
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true })),
  );
  await page.getByText("连接已断开，正在重连…").waitFor();
  await page.getByRole("alert").getByText("暂时读不到应用列表").waitFor();
  assert.equal(await cards(page).count(), 6);
  await visit.look("welcome-away");
  await visit.back();
  await page.getByText("2 个应用可用").waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
}

/** The host wants a key for its list of applications: the page stays useful. */
async function locked(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 40[134]/);
  await page.getByRole("alert").getByText("暂时读不到应用列表").waitFor();
  assert.equal(await cards(page).count(), 5);
  assert.equal(await status(page, "expense"), "状态未知");
  await visit.look("welcome-locked");
}

await run({
  shows: both(shows),
  speaks: inEnglish(speaks),
  away: onPhone(away),
  locked: onPhone(locked),
});
