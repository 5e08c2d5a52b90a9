// A user at the page of nl2sql; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Standin } from "./standin.ts";
import {
  both,
  comesTo,
  downloaded,
  eventually,
  onPhone,
  order,
  run,
  textOf,
  type Visit,
  watchRows,
} from "./visit.ts";

/** A question whose answer has a line, one with bars, and one whose answer is a list. */
const TREND = "2024年每月的销售额";
const BARS = "2024年各渠道的客单价";
const LIST = "列出2024年北京的订单";

/** A question for which the stand-in names a field that is not there, as models do. */
const MENDED = "2024年的下单金额是多少";

const HOSTILE = "<img src=x onerror=\"document.title='hacked'\">";

/** Rows that the page shows at most. */
const MOST_ROWS = 1_000;

/** Rows that exist at once: those in sight, and some around them. */
const MOST_EXISTING_ROWS = 60;

const BAD_ANSWER = /the server responded with a status of [45]\d\d/;

const standinOf = ({ url }: Visit) => new Standin(url);

/** The model of a role answers its next request with this document. */
function writes(visit: Visit, model: string, document: object): Promise<void> {
  const fault = { kind: "content", text: JSON.stringify(document) } as const;
  return standinOf(visit).fault({ model, times: 1, fault });
}

const field = (page: Page) => page.getByRole("textbox", { name: "问题" });
/** Elements by their name, within a page or another element. */
const parts = (place: Page | Locator, name: string) => place.locator(`[data-part="${name}"]`);
const turns = (page: Page) => parts(page, "turn");
const result = (page: Page) => parts(turns(page).last(), "result");

/**
 * Sends a question. Just after an answer the field still waits for the end of its stream, and takes
 * no key.
 */
async function send(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  // A page that still works on something takes no message.
  await page.locator('.w-composer button[type="submit"][aria-busy="false"]').waitFor();
  await page.keyboard.press("Enter");
  await eventually(async () => assert.equal(await field(page).inputValue(), ""));
}

async function ask(page: Page, text: string): Promise<void> {
  const before = await turns(page).count();
  await send(page, text);
  await parts(turns(page).nth(before), "result").waitFor();
}

/** The list of sessions: beside the conversation, or in a dialog where there is no room. */
async function openHistory({ page, viewport }: Visit): Promise<Locator> {
  if (viewport.width >= 720) return page.getByRole("navigation", { name: "历史会话" });
  const dialog = page.getByRole("dialog", { name: "历史会话" });
  if (!(await dialog.isVisible())) await page.getByRole("button", { name: "历史" }).click();
  await dialog.waitFor();
  return dialog;
}

const titled = (history: Locator, text: string) => parts(history, "title").getByText(text);

/** The texts of a column of the table, as far as its rows exist. */
function column(page: Page, name: string): Promise<string[]> {
  const table = result(page).locator("table");
  return table.evaluate((table, name) => {
    const heads = [...table.querySelectorAll("th")].map((head) => head.textContent ?? "");
    const at = heads.findIndex((head) => head.startsWith(name));
    const selector = "tbody tr:not([aria-hidden])";
    const rows = [...table.querySelectorAll<HTMLTableRowElement>(selector)];
    return rows.map((row) => row.cells[at]?.textContent ?? "");
  }, name);
}

/** So many questions there are in the end. */
const asked = (page: Page, count: number) => comesTo(turns(page), count);

/** Opens the steps of a turn, which close by themselves when its answer is shown. */
async function openSteps(turn: Locator): Promise<void> {
  await turn.locator('[data-part="steps"]:not([open])').waitFor();
  await parts(turn, "steps").locator("summary").click();
}

/** A question becomes steps, words, a line, a table that sorts, and a statement in colors. */
async function answers(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("list", { name: "示例问题" }).waitFor();
  await visit.look("welcome");
  await ask(page, TREND);
  assert.match(await textOf(parts(result(page), "summary")), /12 行/);
  const words = await textOf(result(page).locator("figcaption"));
  assert.match(words, /折线图：按 month 的 12 个数据点；total_sales 最低 .*，最高 /);
  await result(page).getByRole("img", { name: words }).locator("canvas").waitFor();
  await eventually(async () => assert.equal((await column(page, "month")).length, 12));
  const sales = result(page).getByRole("button", { name: "total_sales" });
  await sales.focus();
  await page.keyboard.press("Enter");
  const sorted = (await column(page, "total_sales")).map(Number);
  assert.deepEqual(
    sorted,
    sorted.toSorted((a, b) => a - b),
  );
  await page.keyboard.press("Enter");
  assert.equal(Number((await column(page, "total_sales"))[0]), Math.max(...sorted));
  await openSteps(turns(page).last());
  const names = await parts(turns(page).last(), "steps").locator("li strong").allTextContents();
  assert.deepEqual(names, ["理解问题", "解析任务", "生成查询", "执行查询", "整理结果"]);
  await parts(result(page), "statement").locator("summary").click();
  await result(page).locator(".w-sql-keyword").first().waitFor();
  const sql = await textOf(parts(result(page), "statement").locator("pre"));
  assert.match(sql, /^WITH base AS/);
  await visit.look("trend");
  await ask(page, BARS);
  assert.match(await textOf(result(page).locator("figcaption")), /柱状图：按 channel 的 4 个/);
  await visit.look("bars");
}

/** What went wrong, and what was done about it, while it happens and in the history. */
async function repairs(visit: Visit): Promise<void> {
  const { page } = visit;
  await ask(page, MENDED);
  const turn = turns(page).last();
  await openSteps(turn);
  const rows = parts(turn, "steps").locator("li[data-step]");
  const states = await rows.evaluateAll((rows) =>
    rows.map(({ dataset }) => `${dataset.step} ${dataset.status}`),
  );
  assert.deepEqual(states.slice(2), [
    "sql_generation failed",
    "hidden_context done",
    "sql_generation done",
    "sql_validate done",
    "result_return done",
  ]);
  await turn.getByText("第 2 次").first().waitFor();
  const repair = parts(turn, "repair");
  assert.match(await textOf(repair.locator("summary")), /重试 1 次后成功：字段不存在/);
  await repair.locator("summary").click();
  const replaced = await repair.getByRole("list", { name: "替换的字段" }).textContent();
  assert.equal(replaced, "orders.order_amount → orders.total_amount");
  await repair
    .getByRole("list", { name: "给下一次尝试的提示" })
    .getByText("total_amount")
    .waitFor();
  await visit.look("mended");
  await page.reload();
  await parts(turns(page).last(), "repair").getByText("重试 1 次后成功").waitFor();
  await ask(page, "列出2030年的订单");
  const last = turns(page).last();
  await last.getByText("重试 2 次后仍未成功").waitFor();
  await last.getByText("部分成功").waitFor();
  await visit.look("empty");
}

/** 1,000 rows: a part of them exists, all can be reached, and the file has them. */
async function lists(visit: Visit): Promise<void> {
  const { page } = visit;
  const sql =
    "WITH x AS (SELECT orders.id AS id, orders.order_no AS order_no, orders.channel AS channel, " +
    "orders.total_amount AS total_amount FROM orders) SELECT * FROM x ORDER BY id";
  await writes(visit, "sql", { sql, entity_mappings: [] });
  await ask(page, "列出订单");
  const check = async () => {
    await result(page).getByText("共 1,000 行").waitFor();
    const table = result(page).getByRole("group", { name: "查询结果" });
    const mostRows = await watchRows(table, "aria-rowindex");
    await table.evaluate(async (box) => {
      const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
      for (let top = 0; top < box.scrollHeight; top += 2_000) {
        box.scrollTo({ top });
        await next();
      }
      box.scrollTo({ top: box.scrollHeight });
    });
    await table.locator(`tr[aria-rowindex="${MOST_ROWS + 1}"]`).waitFor();
    await table.getByRole("button", { name: "id", exact: true }).first().click();
    await table.getByRole("button", { name: "id", exact: true }).first().click();
    await table.evaluate((box) => box.scrollTo({ top: 0 }));
    await table.locator("tr[aria-rowindex='2']").getByText("1000", { exact: true }).waitFor();
    const most = await mostRows();
    assert.ok(most > 5 && most <= MOST_EXISTING_ROWS, `${most} rows existed at once`);
    assert.equal(await result(page).locator("figure").count(), 0, "a list has no plot");
  };
  await check();
  await visit.look("list");
  const [name, content] = await downloaded(page, "下载 CSV");
  assert.match(name, /^[0-9a-f]{16}-\d{14}-[0-9a-f]{16}\.csv$/);
  const lines = content.trimEnd().split("\r\n");
  assert.equal(lines.length, MOST_ROWS + 1);
  await page.reload();
  await check();
}

/** Sessions are listed, opened, cleared and deleted, by keyboard as well. */
async function remembers(visit: Visit): Promise<void> {
  const { page } = visit;
  await ask(page, "有多少客户");
  const address = page.url();
  await page.getByRole("button", { name: "新会话" }).click();
  await page.getByRole("heading", { name: "想了解什么数据？" }).waitFor();
  await ask(page, LIST);
  let history = await openHistory(visit);
  const titles = parts(history, "title");
  // The list is read again after an answer. The clock of the tests is stopped, so neither was used
  // last.
  await eventually(async () =>
    assert.deepEqual((await titles.allTextContents()).toSorted(), [LIST, "有多少客户"].toSorted()),
  );
  await visit.look("history");
  await titled(history, "有多少客户").click();
  await turns(page).getByText("有多少客户").waitFor();
  // The address names the session.
  await page.waitForURL(address);
  await page.goBack();
  await turns(page).getByText(LIST).waitFor();
  await page.goForward();
  await turns(page).getByText("有多少客户").waitFor();

  history = await openHistory(visit);
  await history.getByRole("button", { name: "清空消息：有多少客户" }).click();
  const dialog = page.getByRole("dialog", { name: "清空消息" });
  await visit.look("clear");
  await dialog.getByRole("button", { name: "清空" }).click();
  await dialog.waitFor({ state: "hidden" });
  history = await openHistory(visit);
  await history.getByText("0 条").waitFor();
  await history.getByRole("button", { name: `删除会话：${LIST}` }).focus();
  await page.keyboard.press("Enter");
  await page
    .getByRole("dialog", { name: "删除会话" })
    .getByRole("button", { name: "取消" })
    .click();
  await history.getByRole("button", { name: `删除会话：${LIST}` }).click();
  const sure = page.getByRole("dialog", { name: "删除会话" });
  await sure.getByRole("button", { name: "删除", exact: true }).click();
  await titled(history, LIST).waitFor({ state: "detached" });
  await eventually(async () => assert.deepEqual(await titles.allTextContents(), ["有多少客户"]));
  await history.getByRole("button", { name: "删除会话：有多少客户" }).click();
  await sure.getByRole("button", { name: "删除", exact: true }).click();
  await page.getByText("还没有会话").first().waitFor({ state: "attached" });
}

/** Steps are shown as they happen; a reload in the middle continues to the answer. */
async function reloads(visit: Visit): Promise<void> {
  const { page } = visit;
  const held = await standinOf(visit).hold({ model: "sql" });
  await field(page).fill(TREND);
  await page.keyboard.press("Enter");
  const running = turns(page).last().locator("[data-step='sql_generation'][data-status='running']");
  await running.waitFor();
  const shown = await parts(turns(page).last(), "steps").locator("li strong").allTextContents();
  assert.deepEqual(shown, ["理解问题", "解析任务", "生成查询"]);
  await held();
  await visit.look("running");
  await page.reload();
  await turns(page).last().getByText("正在处理这个问题").waitFor();
  await visit.look("waiting");
  await standinOf(visit).release();
  await result(page).locator("canvas").waitFor();
  await asked(page, 1);
  // The answer is not the page's own: it has no steps, but everything else.
  await eventually(async () => assert.equal((await column(page, "month")).length, 12));
}

/** A workflow that fails says why, also after a reload. */
async function fails(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(BAD_ANSWER);
  const fault = { kind: "status", status: 503 } as const;
  await standinOf(visit).fault({ model: "parse", times: 1, fault });
  await field(page).fill("有多少订单");
  await page.keyboard.press("Enter");
  const alert = turns(page).last().getByRole("alert");
  await alert.waitFor();
  const said = await textOf(alert);
  assert.ok(said.length > 10, said);
  await turns(page).last().locator("[data-step='task_parse'][data-status='failed']").waitFor();
  await visit.look("failed");
  await page.reload();
  // The stream names the node as well, the log has the reason alone.
  const kept = await textOf(turns(page).last().getByRole("alert"));
  assert.ok(kept.length > 10 && said.endsWith(kept), `${said} / ${kept}`);
  await ask(page, "有多少客户");
  assert.match(await textOf(parts(result(page), "summary")), /392/);
}

/** Markup in a question, a title, a model's answer and a result is text. */
async function isHarmless(visit: Visit): Promise<void> {
  const { page } = visit;
  const sql =
    `WITH x AS (SELECT '${HOSTILE.replaceAll("'", "''")}' AS bad, 1 AS n UNION ALL ` +
    "SELECT '</script><b>b</b>', 2) SELECT bad, n AS \"<i>total</i>\" FROM x";
  const summary = `${HOSTILE} [x](javascript:alert(1))`;
  await writes(visit, "sql", { sql, entity_mappings: [] });
  await writes(visit, "summary", { summary });
  await ask(page, `有多少订单 ${HOSTILE}`);
  await eventually(async () =>
    assert.deepEqual(await column(page, "bad"), [HOSTILE, "</script><b>b</b>"]),
  );
  assert.equal(await textOf(parts(result(page), "summary")), summary);
  await parts(result(page), "statement").locator("summary").click();
  const shown = await textOf(parts(result(page), "statement").locator("pre"));
  assert.ok(shown.includes(HOSTILE.slice(0, 20)));
  assert.equal(await turns(page).locator("img, a, script, b, i").count(), 0);
  await visit.look("hostile");
  const history = await openHistory(visit);
  await history.getByText(HOSTILE.slice(0, 10)).first().waitFor();
  assert.equal(await history.locator("img").count(), 0);
  await visit.look("hostile-history");
  assert.doesNotMatch(await page.title(), /^hacked/);
}

/** The server is away: the page says so, keeps the text, and continues when it is back. */
async function survives(visit: Visit): Promise<void> {
  const { page } = visit;
  await ask(page, "有多少客户");
  await visit.away();
  await field(page).fill(LIST);
  await page.keyboard.press("Enter");
  await page.getByText("连接已断开，正在重连…").waitFor();
  // The text is kept.
  await page.locator(`.w-composer-grow[data-text="${LIST} "]`).waitFor({ state: "attached" });
  await visit.look("away");
  await visit.back();
  await page.getByText("连接已断开，正在重连…").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "发送" }).click();
  await parts(turns(page).nth(1), "result").locator("table").waitFor();
  // In the middle of an answer: the run continues without the page.
  const standin = standinOf(visit);
  const held = await standin.hold({ model: "sql" });
  await send(page, TREND);
  await held();
  await visit.away();
  await page.getByText("连接已断开，正在重连…").waitFor();
  await standin.release();
  await visit.back();
  await turns(page).nth(2).locator("canvas").waitFor();
  await asked(page, 3);
}

/** The server is killed while the page waits and in the middle of an answer, and started again. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A server that starts refuses what is asked of it.
  visit.expect(/net::ERR|Failed to fetch|status of 503/);
  const told = page.getByRole("status").getByText("连接已断开，正在重连…");
  // The part that draws is loaded with the first plot; a browser does not load it again after a
  // failure.
  await ask(page, TREND);
  await result(page).locator("canvas").waitFor();
  await order("kill");
  await field(page).fill(LIST);
  await page.keyboard.press("Enter");
  await told.waitFor();
  await page.locator(`.w-composer-grow[data-text="${LIST} "]`).waitFor({ state: "attached" });
  await order("start");
  await told.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "发送" }).click();
  await parts(turns(page).nth(1), "result").locator("table").waitFor();
  const held = await standinOf(visit).hold({ model: "sql" });
  await send(page, TREND);
  await turns(page).nth(2).locator("[data-step='sql_generation'][data-status='running']").waitFor();
  // A request that comes after the restart is answered.
  await held();
  await order("kill");
  await told.waitFor();
  await visit.look("killed");
  await order("start");
  // The run continues in the new process, and the page shows its answer.
  await turns(page).nth(2).locator("canvas").waitFor();
  await told.waitFor({ state: "detached" });
  await asked(page, 3);
  await page.reload();
  await turns(page).nth(2).locator("canvas").waitFor();
  // Nothing was asked twice.
  await asked(page, 3);
}

/** Who clicks twice asks once. */
async function submitsOnce(visit: Visit): Promise<void> {
  const { page } = visit;
  await field(page).fill("有多少客户");
  await page.getByRole("button", { name: "发送" }).dblclick();
  await result(page).waitFor();
  const sent = visit.sent.filter(([, path]) => path.endsWith("/api/chat/stream"));
  assert.equal(sent.length, 1, JSON.stringify(sent));
  await asked(page, 1);
}

/** Two tabs on one session show the same, and only one of two questions at once is taken. */
async function agrees(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(BAD_ANSWER);
  await ask(page, "有多少客户");
  const other = await visit.tab(page.url());
  await parts(turns(other).first(), "result").waitFor();
  const standin = standinOf(visit);
  const held = await standin.hold({ model: "sql" });
  await field(page).fill(TREND);
  await page.keyboard.press("Enter");
  await turns(page).nth(1).locator("[data-step='sql_generation']").waitFor();
  await held();
  await turns(other).nth(1).getByText("正在处理这个问题").waitFor();
  const refused = await other.evaluate(async (session) => {
    const body = JSON.stringify({ session_id: session, message: "有多少订单" });
    const headers = { "content-type": "application/json" };
    const path = new URL("api/chat", document.baseURI);
    return (await fetch(path, { method: "POST", headers, body })).status;
  }, new URL(page.url()).searchParams.get("session"));
  assert.equal(refused, 409);
  await standin.release();
  for (const tab of [page, other]) {
    await parts(turns(tab).nth(1), "result").locator("table").waitFor();
    await asked(tab, 2);
  }
  const texts = (tab: Page) => parts(tab, "summary").allTextContents();
  await eventually(async () => assert.deepEqual(await texts(other), await texts(page)));
}

await run({
  answers: both(answers),
  repairs: onPhone(repairs),
  lists: onPhone(lists),
  remembers: both(remembers),
  reloads: onPhone(reloads),
  fails: onPhone(fails),
  isHarmless: onPhone(isHarmless),
  survives: onPhone(survives),
  submitsOnce: onPhone(submitsOnce),
  agrees: onPhone(agrees),
  outlives: onPhone(outlives),
});
