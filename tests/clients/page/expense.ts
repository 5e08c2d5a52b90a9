// A user at the page of the expense application; see `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { Standin } from "./standin.ts";
import {
  both,
  comesTo,
  eventually,
  onPhone,
  order,
  run,
  textOf,
  type Visit,
  valueAt,
} from "./visit.ts";

/** A telephone shows the conversation or the book. */
async function show(visit: Visit, name: string, page = visit.page): Promise<void> {
  if (visit.viewport.width >= 860) return;
  await page.getByRole("radio", { name }).check();
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "消息" }).fill(text);
  // A page that still works on something takes no message.
  await page.locator('.w-composer button[type="submit"][aria-busy="false"]').waitFor();
  await page.keyboard.press("Enter");
}

/** The answer to the last message is complete. */
async function answered(page: Page, count: number): Promise<void> {
  await page
    .getByRole("article", { name: "助手" })
    .nth(count - 1)
    .waitFor();
  await page.locator('.w-messages-box[aria-busy="false"]').waitFor();
}

/** The texts of the conversation, without those of cards. */
const paragraphs = (page: Page) => page.locator('[data-part="text"]');

/**
 * The last text of the conversation is such a one, sooner or later: a page that joins an answer
 * shows parts of it.
 */
const replies = (page: Page, pattern: RegExp) =>
  eventually(async () => assert.match(await textOf(paragraphs(page).last()), pattern));

const card = (page: Page, tool: string) => page.locator(`.w-tool[data-tool="${tool}"]`).last();

const said = (page: Page) => page.locator('.w-said[data-by="user"]');

const tile = (page: Page, name: string) => page.locator(`[data-sum="${name}"] dd`);

const sum = (page: Page, name: string) => textOf(tile(page, name));

/** The number in the tile of bookings is this one, sooner or later. */
async function counts(page: Page, count: number): Promise<void> {
  await tile(page, "笔数")
    .filter({ hasText: new RegExp(`^${count}$`) })
    .waitFor({ state: "attached" });
}

const count = async (page: Page) => Number(await sum(page, "笔数"));

const bars = (page: Page, kind: string) => page.locator(`figure[data-kind="${kind}"]`);

const remarks = (page: Page) => page.locator('[data-part="remark"]');

/** The messages that were sent. */
const messages = ({ sent }: Visit) => sent.map(([, , body]) => valueAt(body, "message"));

/** Cards with what was asked and answered, the reply, and the book beside it. */
async function books(visit: Visit): Promise<void> {
  const { page } = visit;
  await tile(page, "笔数").waitFor({ state: "attached" });
  const before = await count(page);
  await visit.look("expense-welcome");
  await say(page, "昨天打车花了20元");
  await answered(page, 1);
  const saved = card(page, "saveExpenseToLark");
  const dated = card(page, "parseDateExpression");
  await dated.filter({ hasText: /换算日期.*已完成.*昨天 → 2025-01-14 00:00:00/ }).waitFor();
  await saved.filter({ hasText: /保存到账本.*已完成.*打车 · 交通 · 支出 · ¥20.00/ }).waitFor();
  const booked = /^✅ 记账成功！\n\n💰 打车\n📅 2025-01-14 00:00:00\n🏷️ 交通 \| 💵 ¥20 \| 📊 支出$/u;
  await replies(page, booked);
  await saved.locator("summary").focus();
  await page.keyboard.press("Enter");
  // What a card holds is made after it has opened.
  await saved.locator("pre").nth(1).waitFor();
  const documents = await saved.locator("pre").allTextContents();
  const [input, output] = documents.map((text): unknown => JSON.parse(text));
  assert.equal(valueAt(input, "amount"), 20);
  assert.equal(valueAt(output, "status"), "success");
  await visit.look("expense-booked");
  await show(visit, "账本");
  await counts(page, before + 1);
  await bars(page, "consume").filter({ hasText: "交通" }).waitFor();
  await visit.look("expense-month");
  await page.getByRole("radio", { name: "当天" }).check();
  assert.equal(await count(page), 0, "nothing was booked today");
  await page.getByRole("combobox", { name: "日期" }).selectOption("2025-01-14");
  assert.equal(await sum(page, "支出"), `¥${(20 * (before + 1)).toFixed(2)}`);
  await visit.look("expense-day");
  // The address names the conversation, so a reload shows it again.
  const address = new URL(page.url());
  assert.ok(address.searchParams.get("thread"));
  await page.reload();
  await show(visit, "对话");
  await answered(page, 1);
  await replies(page, booked);
  await comesTo(page.locator(".w-tool"), 2);
  const posts = visit.sent.map(([method, path]) => [method, path.split("/api/")[1]]);
  assert.deepEqual(posts, [["POST", "chat/stream"]]);
  assert.deepEqual(messages(visit), ["昨天打车花了20元"]);
  await page.getByRole("button", { name: "新对话" }).click();
  await page.getByRole("list", { name: "试一试" }).waitFor();
  await page.waitForURL(({ searchParams }) => searchParams.get("thread") === null);
}

/** What is missing is asked for; the same conversation continues. */
async function asks(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "昨天打车");
  await answered(page, 1);
  await replies(page, /金额/);
  assert.equal(await page.locator(".w-tool").count(), 0);
  await say(page, "20元");
  await answered(page, 2);
  await replies(page, /✅/);
  await visit.look("expense-asked");
  const thread = new URL(page.url()).searchParams.get("thread");
  assert.equal(valueAt(visit.sent, 1, 2, "threadId"), thread);
}

/** A double click, a double Enter: one message. */
async function twice(visit: Visit): Promise<void> {
  const { page } = visit;
  await tile(page, "笔数").waitFor({ state: "attached" });
  const before = await count(page);
  await page.getByRole("button", { name: "昨天打车花了20元" }).dblclick();
  await answered(page, 1);
  await page.getByRole("textbox", { name: "消息" }).fill("午饭30元");
  await page.getByRole("button", { name: "发送" }).dblclick();
  await answered(page, 2);
  await counts(page, before + 2);
  assert.equal(visit.sent.length, 2);
}

/** Markup in messages, in the table and in a suggested message is text. */
async function hostile(visit: Visit): Promise<void> {
  const { page } = visit;
  const bad = "<img src=x onerror=alert()>";
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  const address = new URL(visit.url);
  address.searchParams.set("initial", `${bad}午饭30元`);
  await page.goto(address.href);
  const suggestion = page.getByRole("button", { name: `${bad}午饭30元` });
  await suggestion.waitFor();
  assert.deepEqual(visit.sent, [], "nobody but the user sends a message");
  await suggestion.click();
  await answered(page, 1);
  assert.equal(await said(page).textContent(), `${bad}午饭30元`);
  await paragraphs(page).last().filter({ hasText: bad }).waitFor();
  await show(visit, "账本");
  await remarks(page).filter({ hasText: "<script>alert(2)</script>" }).first().waitFor();
  await remarks(page).filter({ hasText: bad }).first().waitFor();
  assert.equal(await page.locator("#root img, #root script").count(), 0);
  await visit.look("expense-hostile");
}

/** No model answers: the page says so, and the message is answered once more without being said. */
async function fails(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "打车20元");
  const alert = page.getByRole("alert");
  await alert.getByText("AI 服务暂时不可用").waitFor();
  assert.equal(await page.getByText("没有得到回答").count(), 0, "one reason is enough");
  await visit.look("expense-failed");
  await page.reload();
  await alert.getByText("AI 服务暂时不可用").waitFor();
  await alert.getByRole("button", { name: "重试" }).click();
  await answered(page, 1);
  // The page reads the conversation once more when it has been answered.
  await replies(page, /✅/);
  await comesTo(alert, 0);
  await comesTo(said(page), 1);
  assert.deepEqual(messages(visit), ["打车20元", undefined]);
  const retries = visit.sent.map(([, , body]) => valueAt(body, "retry"));
  assert.deepEqual(retries, [undefined, true]);
}

/** A page that is loaded again while the model answers shows the rest. */
async function reloads(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "昨天打车花了20元");
  await page.waitForURL(/thread=/);
  await page.reload();
  await said(page).waitFor();
  await order("open");
  await answered(page, 1);
  await replies(page, /✅/);
  await comesTo(page.locator(".w-tool"), 2);
  assert.equal(visit.sent.length, 1);
}

/**
 * An answer that ends between the two requests of a page, the one that finds it and the one that
 * joins it.
 */
async function misses(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "昨天打车花了20元");
  await page.waitForURL(/thread=/);
  await page.route(
    /threads\/[^/]+\/stream$/,
    async (route) => {
      await order("open");
      const thread = route
        .request()
        .url()
        .replace(/\/stream$/, "");
      await eventually(async () => {
        const { status } = await (await page.request.get(thread)).json();
        assert.notEqual(status, "running");
      });
      await route.continue();
    },
    { times: 1 },
  );
  await page.reload();
  await answered(page, 1);
  await replies(page, /✅/);
}

/** The server is away: the page says so, keeps the text, and continues when it is back. */
async function away(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "你好");
  await answered(page, 1);
  await visit.away();
  await say(page, "午饭30元");
  await page.getByText("连接已断开，正在重连…").waitFor();
  await page.getByRole("alert").getByText("可能已经送达").waitFor();
  // The text is back in its field, and not said.
  await page.locator('.w-composer-grow[data-text="午饭30元 "]').waitFor({ state: "attached" });
  await comesTo(said(page), 1);
  await visit.look("expense-away");
  await visit.back();
  await page.getByText("连接已断开，正在重连…").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "发送" }).click();
  await answered(page, 2);
  await replies(page, /✅/);
  // In the middle of an answer: it is joined again.
  await say(page, "晚饭50元");
  await said(page).nth(2).waitFor();
  await visit.away();
  await page.getByText("连接已断开，正在重连…").waitFor();
  await visit.back();
  await answered(page, 3);
  await paragraphs(page).filter({ hasText: "晚饭" }).last().waitFor();
  await paragraphs(page).filter({ hasText: "✅" }).nth(1).waitFor();
  await comesTo(said(page), 3);
}

/** The server is killed while the page waits and in the middle of an answer, and started again. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A server that starts refuses what is asked of it.
  visit.expect(/net::ERR|Failed to fetch|status of 503/);
  const lost = page.getByText("连接已断开，正在重连…");
  await say(page, "你好");
  await answered(page, 1);
  await order("kill");
  await say(page, "午饭30元");
  await lost.waitFor();
  await page.getByRole("alert").getByText("可能已经送达").waitFor();
  await page.locator('.w-composer-grow[data-text="午饭30元 "]').waitFor({ state: "attached" });
  await comesTo(said(page), 1);
  await visit.look("expense-killed");
  await order("start");
  await lost.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "发送" }).click();
  await answered(page, 2);
  await replies(page, /✅/);
  const isHeld = await new Standin(visit.url).hold({ model: "chat" });
  await say(page, "晚饭50元");
  await isHeld();
  await order("kill");
  await lost.waitFor();
  await order("start");
  // The run continues in the new process, and the page shows its answer.
  await answered(page, 3);
  await replies(page, /^✅.*晚饭/s);
  await lost.waitFor({ state: "detached" });
  await comesTo(page.getByRole("alert"), 0);
  await page.reload();
  await answered(page, 3);
  await comesTo(said(page), 3);
  // The page itself sends nothing again.
  assert.deepEqual(messages(visit), ["你好", "午饭30元", "午饭30元", "晚饭50元"]);
}

/** Two tabs on one conversation show the same, and so do their books. */
async function tabs(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "你好");
  await answered(page, 1);
  const other = await visit.tab(page.url());
  await answered(other, 1);
  const before = await count(other);
  await say(page, "午饭30元");
  await answered(page, 2);
  await paragraphs(other).filter({ hasText: "✅" }).waitFor();
  await counts(other, before + 1);
  const texts = (page: Page) => page.locator(".w-messages-content").innerText();
  const agree = () => eventually(async () => assert.equal(await texts(other), await texts(page)));
  await agree();
  await answered(other, 2);
  await say(other, "晚饭50元");
  await answered(other, 3);
  await paragraphs(page).filter({ hasText: "晚饭" }).last().waitFor();
  await answered(page, 3);
  await counts(page, before + 2);
  await agree();
  await other.close();
}

/** A conversation that is not there any more: the page says so and begins another one. */
async function gone(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 404/);
  await page.goto(`${visit.url}?thread=nobody`);
  await page.getByText("对话不存在或已过期，已开始新的对话。").waitFor();
  await say(page, "打车20元");
  await answered(page, 1);
  await replies(page, /✅/);
}

/** The table cannot be read: the book says why, and the conversation works. */
async function unread(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 502/);
  await show(visit, "账本");
  const alert = page.getByRole("region", { name: "账本" }).getByRole("alert");
  await alert.getByText("没有表格的编辑权限").waitFor();
  await visit.look("expense-unread");
  await alert.getByRole("button", { name: "重试" }).click();
  await tile(page, "笔数").waitFor();
  assert.equal(await alert.count(), 0);
}

/** Months with many bookings, the one before, the way back; all by keyboard. */
async function months(visit: Visit): Promise<void> {
  const { page } = visit;
  await tile(page, "笔数").waitFor({ state: "attached" });
  await show(visit, "账本");
  await bars(page, "income").waitFor();
  assert.equal(await bars(page, "consume").locator("li").count(), 14);
  await visit.look("expense-full");
  await page.getByRole("button", { name: "上个月" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "2024年12月" }).waitFor();
  assert.equal(await count(page), 1);
  await page.getByRole("button", { name: "本月" }).click();
  await page.getByRole("heading", { name: "2025年1月" }).waitFor();
  await bars(page, "consume").locator("li").nth(13).waitFor();
}

await run({
  books: both(books),
  asks: onPhone(asks),
  twice: onPhone(twice),
  hostile: onPhone(hostile),
  reloads: onPhone(reloads),
  misses: onPhone(misses),
  tabs: onPhone(tabs),
  gone: onPhone(gone),
  months: onPhone(months),
  away: onPhone(away),
  fails: onPhone(fails),
  unread: onPhone(unread),
  outlives: onPhone(outlives),
});
