// A user of the page of `asset`: `node asset.js <scenario> <url> <folder for pictures>`. The
// address may bring `picture`, a screenshot in base64, and `thread`, a thread to go on with.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Standin } from "./standin.ts";
import {
  both,
  comesTo,
  onPhone,
  order,
  parameter,
  run,
  textOf,
  type Visit,
  valueAt,
  watchLongTasks,
  watchRows,
} from "./visit.ts";

const TRADE = "昨天买入腾讯 100 股 320";

const EXPIRED = "上次解析结果已过期，请重新输入";

const KEY = "wattle-asset-thread";

const OPERATION = ["操作", "股票代码", "股票名称", "数量", "价格", "币种", "日期"];

const HOLDING = ["股票代码", "股票名称", "持仓数量", "成本价", "币种"];

const dialog = (page: Page) => page.getByRole("dialog", { name: "新增资产" });

const review = (page: Page) => dialog(page).getByRole("table", { name: "待确认的记录" });

const cell = (page: Page, row: number, heading: string) =>
  dialog(page).getByLabel(`第 ${row} 行 ${heading}`, { exact: true });

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

async function open(page: Page): Promise<void> {
  await button(page, "新增资产").click();
  await dialog(page).waitFor();
}

async function describe(page: Page, text: string): Promise<void> {
  await dialog(page).getByLabel("描述交易或持仓").fill(text);
  await button(page, "开始解析").click();
}

/** From a sentence to its review. */
async function parse(page: Page, text: string): Promise<void> {
  await open(page);
  await describe(page, text);
  await review(page).waitFor();
}

async function headings(page: Page): Promise<string[]> {
  const texts = await review(page).getByRole("columnheader").allTextContents();
  return texts.slice(0, -1);
}

async function choose(page: Page, portfolio: string): Promise<void> {
  await dialog(page).getByLabel("投资组合").selectOption({ label: "＋ 新建组合" });
  await dialog(page).getByLabel("新组合名称").fill(portfolio);
}

async function confirm(page: Page): Promise<void> {
  const loaded = page.waitForEvent("load");
  await button(page, "确认添加到组合").click();
  await loaded;
}

const stored = (page: Page, title: string) => page.getByRole("table", { name: title });

/** Requests that store something. */
const resumes = ({ sent }: Visit) => sent.filter(([, path]) => path.endsWith("/resume"));

/** Requests that begin a run. */
const streams = ({ sent }: Visit) => sent.filter(([, path]) => path.endsWith("/stream"));

/** The thread that a reload continues. */
const savedThread = (page: Page): Promise<string | null> =>
  page.evaluate((key) => localStorage.getItem(key), KEY);

/** S0-86, S0-87, S0-89, S0-90, S0-91, S0-93: input, progress, result, stored list. */
async function adds(visit: Visit): Promise<void> {
  const { page } = visit;
  const name = `长期 ${visit.viewport.width}`;
  await page.getByText("还没有记录").first().waitFor({ state: "attached" });
  await visit.look("empty");
  await open(page);
  await visit.look("input");
  await describe(page, TRADE);
  await review(page).waitFor();
  assert.deepEqual(await headings(page), OPERATION);
  assert.equal(await cell(page, 1, "股票代码").inputValue(), "0700.HK");
  assert.equal(await cell(page, 1, "数量").inputValue(), "100");
  assert.equal(await cell(page, 1, "日期").inputValue(), "2025-01-14");
  assert.equal(await button(page, "确认添加到组合").isEnabled(), false, "no portfolio yet");
  await choose(page, name);
  await dialog(page).getByLabel("风险类别").selectOption({ label: "进取型" });
  assert.equal(await button(page, "确认添加到组合").isEnabled(), true);
  await visit.look("result");
  // The notice goes away by itself, so it is waited for from before it comes.
  await Promise.all([page.getByText("已添加 1 条记录").waitFor(), confirm(page)]);
  await stored(page, "交易记录").waitFor();
  const row = stored(page, "交易记录").getByRole("row").nth(1);
  for (const text of ["0700.HK", "腾讯", "买入", "进取型", name, "2025-01-14"]) {
    await row.getByText(text).waitFor();
  }
  assert.equal(await dialog(page).count(), 0, "the page starts over");
  await visit.look("stored");
  const [resume] = resumes(visit);
  assert.equal(valueAt(resume, 2, "confirmedData", "riskCategory"), "aggressive");
  await page.getByLabel("查看组合").selectOption({ label: name });
  await stored(page, "交易记录").getByText("0700.HK").first().waitFor();
}

/** Why a cell is invalid: with the focus on the cell, the whole text is below it. */
async function reasonBelow(page: Page, field: Locator): Promise<string> {
  await field.focus();
  const reason = dialog(page).locator(`[id="${await field.getAttribute("aria-describedby")}"]`);
  await reason.waitFor();
  const isWhole = await reason.evaluate((it) => {
    const text = it.getBoundingClientRect();
    const frame = it.closest('[role="group"]')?.getBoundingClientRect();
    if (frame === undefined) throw new Error("the table has no frame");
    return text.left >= frame.left && text.right <= frame.right && text.bottom <= frame.bottom;
  });
  assert.ok(isWhole, "the frame of the table cuts the reason");
  return textOf(reason);
}

/** Returns the color of the cell around a field. */
const backgroundOf = (field: Locator): Promise<string> =>
  field.locator("xpath=ancestor::td").evaluate((it) => getComputedStyle(it).backgroundColor);

/** S0-88, S0-89: red cells, checks by column, rows that are added and deleted. */
async function completes(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, "买入青杉玩偶 100 股 200，卖出苹果 10 股");
  await dialog(page).getByText("UNKNOWN ticker: 青杉玩偶").waitFor();
  const ticker = cell(page, 1, "股票代码");
  assert.equal(await ticker.inputValue(), "");
  assert.equal(await ticker.getAttribute("placeholder"), "请补充");
  assert.equal(await ticker.getAttribute("aria-invalid"), "true");
  const red = await backgroundOf(ticker);
  assert.notEqual(red, await backgroundOf(cell(page, 1, "股票名称")));
  assert.equal(await cell(page, 2, "价格").getAttribute("placeholder"), "请补充");
  await choose(page, `补充 ${visit.viewport.width}`);
  const button_ = button(page, "确认添加到组合");
  assert.equal(await button_.isEnabled(), false);
  await visit.look("missing");
  assert.equal(await reasonBelow(page, ticker), "请补充");
  await visit.look("reason");
  await ticker.fill("9992.HK");
  await cell(page, 2, "价格").fill("abc");
  assert.equal(await reasonBelow(page, cell(page, 2, "价格")), "价格必须是不小于 0 的数字");
  assert.equal(await button_.isEnabled(), false);
  await cell(page, 2, "价格").fill("0");
  assert.equal(await button_.isEnabled(), true, "0 is a price");
  await cell(page, 2, "数量").fill("0");
  assert.equal(await button_.isEnabled(), false, "0 is no quantity");
  await button(page, "删除第 2 行").click();
  assert.equal(await button_.isEnabled(), true);
  await button(page, "添加一行").click();
  assert.equal(await button_.isEnabled(), false);
  const added = cell(page, 2, "操作");
  assert.equal(await added.evaluate((it) => it === document.activeElement), true);
  await button(page, "删除第 2 行").click();
  await confirm(page);
  await stored(page, "交易记录").getByText("9992.HK").first().waitFor();
}

/** S0-58, S0-88: what is neither has an empty table, into which a person writes. */
async function unknown(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, "今天天气很好");
  await dialog(page).getByText("无法识别为交易或持仓信息").waitFor();
  assert.equal(await review(page).getByRole("row").count(), 1, "the headings alone");
  await visit.look("unknown");
  await dialog(page).getByRole("radio", { name: "持仓" }).check();
  assert.deepEqual(await headings(page), HOLDING);
  await button(page, "添加一行").click();
  await cell(page, 1, "股票代码").fill("600519.SS");
  await cell(page, 1, "持仓数量").fill("1,000");
  await cell(page, 1, "成本价").fill("1500.5");
  await choose(page, "手工");
  await confirm(page);
  const row = stored(page, "持仓").getByRole("row").nth(1);
  await row.waitFor();
  assert.match(await textOf(row), /600519\.SS.*1,000.*1,500\.5.*CNY/);
}

/** S0-93: a screenshot is pasted, dropped or chosen, checked, previewed and sent. */
async function pictures(visit: Visit): Promise<void> {
  const { page } = visit;
  const picture = parameter(visit.url, "picture");
  await open(page);
  const field = dialog(page).getByLabel("描述交易或持仓");
  const give = (kind: "paste" | "drop", type: string, size: number | null) =>
    field.evaluate(
      (element, { kind, type, size, picture }) => {
        const bytes =
          size === null
            ? Uint8Array.from(atob(picture), (char) => char.charCodeAt(0))
            : new Uint8Array(size);
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], `shot.${type.split("/")[1]}`, { type }));
        const event =
          kind === "paste"
            ? new ClipboardEvent("paste", {
                clipboardData: transfer,
                bubbles: true,
                cancelable: true,
              })
            : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
        element.dispatchEvent(event);
      },
      { kind, type, size, picture },
    );
  await give("paste", "text/plain", 3);
  await dialog(page).getByText("不支持的文件：shot.plain").waitFor();
  await give("drop", "image/png", (10 << 20) + 1);
  await dialog(page)
    .getByText(/文件过大：shot\.png/)
    .waitFor();
  assert.equal(await dialog(page).getByAltText("预览：shot.png").count(), 0);
  await give("paste", "image/png", null);
  await dialog(page).getByAltText("预览：shot.png").waitFor();
  await button(page, "移除 shot.png").click();
  await give("drop", "image/png", null);
  const preview = dialog(page).getByAltText("预览：shot.png");
  await preview.waitFor();
  const width = await preview.evaluate(async (image: HTMLImageElement) => {
    await image.decode();
    return image.naturalWidth;
  });
  assert.ok(width > 0);
  await visit.look("preview");
  await button(page, "开始解析").click();
  await review(page).waitFor();
  assert.deepEqual(await headings(page), HOLDING);
  assert.equal(await cell(page, 1, "股票代码").inputValue(), "600519.SS");
  const [request] = streams(visit);
  assert.match(String(valueAt(request, 2, "imageData")), /^data:image\/png;base64,/);
}

/** S0-89: `重新输入` forgets the result and its thread. */
async function again(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, TRADE);
  assert.ok(await savedThread(page));
  await button(page, "重新输入").click();
  await dialog(page).getByLabel("描述交易或持仓").waitFor();
  assert.equal(await savedThread(page), null);
  assert.equal(await review(page).count(), 0);
}

/** S0-86: a reload continues, at the result and while the nodes are at work. */
async function reloads(visit: Visit): Promise<void> {
  const { page } = visit;
  await open(page);
  await describe(page, TRADE);
  await dialog(page).getByText("正在识别文字类型").first().waitFor({ state: "attached" });
  visit.expect(/ERR_ABORTED|network error/);
  await page.reload();
  await dialog(page).getByText("正在恢复上次的结果").first().waitFor({ state: "attached" });
  await order("open");
  await review(page).waitFor();
  await page.reload();
  await review(page).waitFor();
  assert.equal(await cell(page, 1, "股票代码").inputValue(), "0700.HK");
  assert.equal(streams(visit).length, 1);
}

/** S0-85: a page that is reopened on an expired thread starts over without a word. */
async function reopens(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/410/);
  const thread = parameter(visit.url, "thread");
  await page.evaluate(({ key, thread }) => localStorage.setItem(key, thread), { key: KEY, thread });
  const asked = page.waitForResponse((response) => response.url().includes(`/threads/${thread}`));
  await page.reload();
  assert.equal((await asked).status(), 410);
  await dialog(page).getByLabel("描述交易或持仓").waitFor();
  await page.waitForFunction((key) => localStorage.getItem(key) === null, KEY);
  // The field can be used again: what came of the answer is shown.
  await dialog(page).locator("textarea:enabled").waitFor();
  assert.equal(await page.getByText(EXPIRED).count(), 0);
  assert.equal(await dialog(page).getByRole("alert").count(), 0);
}

/** S0-73, S0-85: the message is shown when an expired review is confirmed. */
async function expires(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/410/);
  await parse(page, TRADE);
  await choose(page, "过期");
  const thread = await savedThread(page);
  const gone = await page.request.delete(new URL(`/api/v1/threads/${thread}`, visit.url).href);
  assert.ok(gone.ok(), `${gone.status()}`);
  await button(page, "确认添加到组合").click();
  await dialog(page).getByText(EXPIRED).waitFor();
  await dialog(page).getByLabel("描述交易或持仓").waitFor();
  await visit.look("expired");
  assert.equal(await savedThread(page), null);
}

/** The page shows a failure of a model, and what was written stays. */
async function fails(visit: Visit): Promise<void> {
  const { page } = visit;
  await open(page);
  await describe(page, TRADE);
  await dialog(page)
    .getByRole("alert")
    .getByText(/^AI 解析失败/)
    .waitFor();
  await page.waitForFunction(
    (text) => document.querySelector<HTMLTextAreaElement>("dialog textarea")?.value === text,
    TRADE,
  );
  await visit.look("failed");
}

/** A double click stores once. */
async function twice(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, TRADE);
  await choose(page, "双击");
  const loaded = page.waitForEvent("load");
  await button(page, "确认添加到组合").dblclick();
  await loaded;
  await stored(page, "交易记录").waitFor();
  assert.equal(resumes(visit).length, 1);
  const made = visit.sent.filter(([, path]) => path.endsWith("/api/portfolios"));
  assert.equal(made.length, 1);
}

/** Two tabs on one thread agree: what one stores, the other shows as stored. */
async function tabs(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, TRADE);
  const other = await visit.tab();
  await review(other).waitFor();
  await choose(page, "两个页面");
  const loaded = other.waitForEvent("load");
  await confirm(page);
  await loaded;
  for (const tab of [page, other]) {
    await stored(tab, "交易记录").waitFor();
    await comesTo(stored(tab, "交易记录").getByRole("row"), 2);
    assert.equal(await dialog(tab).count(), 0);
  }
}

/** The server is away while a review is confirmed, and back. */
async function away(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, TRADE);
  await choose(page, "断线");
  await visit.away();
  await button(page, "确认添加到组合").click();
  await dialog(page).getByText("连接已断开，正在重连…").waitFor();
  await dialog(page).getByRole("alert").waitFor();
  await visit.look("away");
  await visit.back();
  await dialog(page).getByText("连接已断开，正在重连…").waitFor({ state: "detached" });
  assert.equal(await cell(page, 1, "股票代码").inputValue(), "0700.HK", "nothing was lost");
  await confirm(page);
  await stored(page, "交易记录").waitFor();
}

/** The server is killed while the nodes work and while a review is confirmed, and started again. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A server that starts refuses what is asked of it.
  visit.expect(/net::ERR|Failed to fetch|network error|status of 503/);
  const lost = dialog(page).getByText("连接已断开，正在重连…");
  const isHeld = await new Standin(visit.url).hold({ model: "chat" });
  await open(page);
  await describe(page, TRADE);
  await isHeld();
  await order("kill");
  await lost.waitFor();
  await visit.look("killed");
  await order("start");
  // The run continues in the new process, and the page shows its review.
  await review(page).waitFor();
  await lost.waitFor({ state: "detached" });
  await cell(page, 1, "数量").fill("300");
  await choose(page, "重启");
  await order("kill");
  await button(page, "确认添加到组合").click();
  await dialog(page).getByRole("alert").waitFor();
  await lost.waitFor();
  await order("start");
  await lost.waitFor({ state: "detached" });
  assert.equal(await cell(page, 1, "数量").inputValue(), "300", "nothing was lost");
  await confirm(page);
  await stored(page, "交易记录").getByText("300", { exact: true }).waitFor();
  await comesTo(stored(page, "交易记录").getByRole("row"), 2);
  assert.equal(streams(visit).length, 1);
}

/** What others wrote shows as text. */
async function hostile(visit: Visit): Promise<void> {
  const { page } = visit;
  let alerts = 0;
  page.on("dialog", (shown) => {
    alerts += 1;
    return shown.dismiss();
  });
  const evil = "<img src=x onerror=alert(1)>";
  await parse(page, "买入");
  assert.equal(await cell(page, 1, "股票名称").inputValue(), evil);
  assert.equal(await cell(page, 2, "股票名称").inputValue(), "<script>alert(2)</script>");
  await dialog(page).getByText(`UNKNOWN ticker: ${evil}`).waitFor();
  await visit.look("review");
  await cell(page, 1, "股票代码").fill("<B>&AMP;");
  await cell(page, 1, "币种").fill("USD");
  await cell(page, 2, "股票代码").fill("AAPL");
  await choose(page, "<script>alert(3)</script>");
  await confirm(page);
  await stored(page, "交易记录").getByText(evil).first().waitFor();
  // The names of portfolios come by themselves, perhaps after the rows.
  await stored(page, "交易记录").getByText("<script>alert(3)</script>").first().waitFor();
  await visit.look("stored");
  assert.equal(await page.locator("main img, main script, main b").count(), 0);
  assert.equal(alerts, 0);
}

/**
 * Rows of a review that exist at once: those in sight, some around them, and the one with the focus.
 */
const MOST_ROWS = 60;

/** Pixels by which the table of a review is scrolled at a time. */
const SCROLL_PX = 200;

/**
 * Long tasks while the table is typed into and scrolled, at most. A table that rendered all of its
 * rows would have one at each of about 50 steps.
 */
const MOST_LONG_TASKS = 12;

/** Returns the numbers of the rows that change when a user types into a field of row `row`. */
async function rowsChangedByTyping(
  page: Page,
  row: number,
  heading: string,
  text: string,
): Promise<number[]> {
  const field = cell(page, row, heading);
  await field.focus();
  const changed = await review(page).evaluateHandle((table) => {
    const changed = new Set<number>();
    const observer = new MutationObserver((records) => {
      for (const { target } of records) {
        const element = target instanceof Element ? target : target.parentElement;
        changed.add(Number(element?.closest("tr")?.dataset.index ?? -1) + 1);
      }
    });
    const kinds = { childList: true, attributes: true, characterData: true };
    observer.observe(table, { subtree: true, ...kinds });
    return changed;
  });
  await field.pressSequentially(text);
  return changed.evaluate((rows) => [...rows]);
}

/**
 * 200 rows: few exist, all can be reached, edited and stored without delay, and an edit changes its
 * row alone.
 */
async function many(visit: Visit): Promise<void> {
  const { page } = visit;
  await parse(page, "买入");
  await dialog(page).getByText("共 200 行").waitFor();
  const longTasks = await watchLongTasks(page);
  assert.deepEqual(await rowsChangedByTyping(page, 3, "数量", "125"), [3]);
  const mostRows = await watchRows(review(page), "data-index");
  const frame = dialog(page).getByRole("group", { name: "待确认的记录" });
  await frame.evaluate(async (element, step) => {
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let top = 0; top < element.scrollHeight; top += step) {
      element.scrollTop = top;
      await next();
    }
  }, SCROLL_PX);
  await cell(page, 200, "股票代码").waitFor();
  await cell(page, 200, "数量").fill("7");
  await frame.evaluate((element) => {
    element.scrollTop = 0;
  });
  await cell(page, 1, "股票代码").waitFor();
  assert.equal(await cell(page, 200, "数量").inputValue(), "7", "the row with the focus stays");
  const most = await mostRows();
  assert.ok(most > 5 && most <= MOST_ROWS, `${most} rows existed at once`);
  const late = await longTasks();
  assert.ok(late <= MOST_LONG_TASKS, `${late} tasks took longer than 50 ms of processor time`);
  await visit.look("many");
  await choose(page, "很多");
  await confirm(page);
  const rows = valueAt(resumes(visit).at(-1), 2, "confirmedData", "rows");
  assert.equal(valueAt(rows, "length"), 200);
  assert.equal(valueAt(rows, 199, "quantity"), 7);
}

/** S0-86 to S0-93 without a mouse, on a desktop: a telephone has no key `Tab`. */
async function keyboard(visit: Visit): Promise<void> {
  const { page } = visit;
  const press = (key: string) => page.keyboard.press(key);
  const isFocused = (locator: Locator) => locator.evaluate((it) => it === document.activeElement);
  const tabTo = async (locator: Locator, most = 60) => {
    for (let presses = 0; presses < most; presses += 1) {
      if ((await locator.count()) > 0 && (await isFocused(locator))) return;
      await press("Tab");
    }
    assert.fail(`${locator} is not reached by Tab`);
  };
  await tabTo(button(page, "新增资产"));
  await press("Enter");
  const field = dialog(page).getByLabel("描述交易或持仓");
  await tabTo(field);
  await page.keyboard.type("买入青杉玩偶 100 股 200");
  await press("Enter");
  await review(page).waitFor();
  await tabTo(cell(page, 1, "股票代码"));
  await page.keyboard.type("9992.HK");
  await tabTo(button(page, "添加一行"));
  await press("Enter");
  await tabTo(button(page, "删除第 2 行"));
  await press("Enter");
  await tabTo(dialog(page).getByLabel("投资组合"));
  await press("End");
  await tabTo(dialog(page).getByLabel("新组合名称"));
  await page.keyboard.type("键盘");
  await tabTo(button(page, "确认添加到组合"));
  const loaded = page.waitForEvent("load");
  await press("Enter");
  await loaded;
  await stored(page, "交易记录").getByText("9992.HK").waitFor();
  await tabTo(button(page, "新增资产"));
  await press("Enter");
  await dialog(page).waitFor();
  await press("Escape");
  await dialog(page).waitFor({ state: "hidden" });
}

/** A link opens the dialog with its text; a reload does not open it again. */
async function suggests(visit: Visit): Promise<void> {
  const { page } = visit;
  const field = dialog(page).getByLabel("描述交易或持仓");
  await field.waitFor();
  assert.equal(await field.inputValue(), "持有 <b>");
  await page.waitForURL(({ search }) => search === "");
  assert.deepEqual(visit.sent, []);
  await page.reload();
  // The lists are read once the page is there, as a dialog is opened.
  await page.getByText("还没有记录").first().waitFor();
  assert.equal(await dialog(page).isVisible(), false);
}

await run({
  adds: both(adds),
  completes: both(completes),
  unknown: onPhone(unknown),
  pictures: onPhone(pictures),
  again: onPhone(again),
  reloads: onPhone(reloads),
  reopens: onPhone(reopens),
  expires: onPhone(expires),
  fails: onPhone(fails),
  twice: onPhone(twice),
  tabs: onPhone(tabs),
  away: onPhone(away),
  outlives: onPhone(outlives),
  hostile: onPhone(hostile),
  many: onPhone(many),
  keyboard,
  suggests: onPhone(suggests),
});
