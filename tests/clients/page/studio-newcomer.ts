// A newcomer who goes from the front page to an application, and watches in the studio how a
// sentence becomes rows; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { viewOfRun } from "./studio.ts";
import { comesTo, eventually, order, run, type Visit } from "./visit.ts";

/** An example of the application. */
const TRADE = "昨天买入腾讯 100 股 320";

/** Waits until a node in the picture of a run is in a state. */
const isNode = (studio: Page, node: string, status: string): Promise<void> =>
  comesTo(studio.locator(`[data-node="${node}"][data-status="${status}"]`), 1);

/** Opens the graph of the newest run in a list of runs. */
async function openGraph(studio: Page): Promise<void> {
  const runs = studio.getByRole("table", { name: "Runs, newest request first" });
  await runs.locator('tr[data-index="0"]').getByRole("link").first().click();
  await viewOfRun(studio, "Graph").click();
}

/** Types a sentence in place of the example that the link has brought, and sends it. */
async function typeSentence(dialog: Locator): Promise<void> {
  const field = dialog.getByLabel("描述交易或持仓");
  await eventually(async () => assert.equal(await field.inputValue(), TRADE));
  await field.fill("");
  await field.pressSequentially(TRADE);
  await dialog.getByRole("button", { name: "开始解析" }).click();
}

/** The nodes light up in the studio while the page of the application shows its steps. */
async function watch(visit: Visit, studio: Page, dialog: Locator): Promise<void> {
  const steps = dialog.getByRole("list", { name: "处理进度" });
  await openGraph(studio);
  await isNode(studio, "ingest", "done");
  await isNode(studio, "text_classify", "running");
  await visit.look("newcomer-graph", studio);
  await order("classify");
  await isNode(studio, "text_classify", "done");
  await isNode(studio, "ext_op", "running");
  await steps.getByText("已识别文字类型").waitFor();
  await steps.getByText("正在提取交易记录").waitFor();
  await order("extract");
  await isNode(studio, "present_review", "asked");
}

/** Confirms the rows in a new portfolio, which the list then shows. */
async function confirm(page: Page, dialog: Locator): Promise<void> {
  await dialog.getByRole("table", { name: "待确认的记录" }).waitFor();
  await dialog.getByLabel("投资组合").selectOption({ label: "＋ 新建组合" });
  await dialog.getByLabel("新组合名称").fill("长期");
  await dialog.getByLabel("风险类别").selectOption({ label: "进取型" });
  const loaded = page.waitForEvent("load");
  await dialog.getByRole("button", { name: "确认添加到组合" }).click();
  await loaded;
  await page.getByRole("table", { name: "交易记录" }).getByText("0700.HK").first().waitFor();
}

/** From the front page to rows in the database. S0-86: the page shows the nodes while they work. */
async function watches(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByText("1 个应用可用").waitFor();
  await comesTo(page.locator("article[data-app]"), 5);
  const card = page.locator('article[data-app="asset"]');
  const link = card.getByRole("link", { name: "在 Studio 中查看运行" });
  const runs = new URL((await link.getAttribute("href")) ?? "", page.url()).href;
  await card.getByRole("link", { name: TRADE }).click();
  const dialog = page.getByRole("dialog", { name: "新增资产" });
  await typeSentence(dialog);
  const steps = dialog.getByRole("list", { name: "处理进度" });
  await steps.getByText("已读取输入").waitFor();
  await steps.getByText("正在识别文字类型").waitFor();
  await visit.look("newcomer-progress");
  const studio = await visit.tab(runs);
  await watch(visit, studio, dialog);
  await confirm(page, dialog);
  // The answer is a run of its own.
  await studio.goto(runs);
  await openGraph(studio);
  await isNode(studio, "store_db", "done");
  await studio.getByText("completed", { exact: true }).first().waitFor();
}

await run({ watches });
