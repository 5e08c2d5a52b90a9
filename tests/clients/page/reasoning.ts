// The page of the reasoning app, used by a person in a real browser.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Standin } from "./standin.ts";
import {
  both,
  boxOf,
  comesTo,
  eventually,
  onPhone,
  order,
  run,
  textOf,
  type Visit,
} from "./visit.ts";

const MARKUP = "统计<img src=x onerror=alert(1)>各区域的客户数量";

/** What a browser says of an answer that is an error, and of requests without a connection. */
const REFUSED = /the server responded with a status of 4/;

const composer = (page: Page) => page.getByRole("textbox");
const said = (page: Page) => page.getByRole("article");
const cards = (page: Page) => page.locator("[data-entry]");
const card = (page: Page) => cards(page).last();
const answers = (page: Page) => page.locator('[data-entry="answer"]');
const working = (page: Page) => page.locator('[data-entry="working"]');
const part = (place: Page | Locator, name: string) => place.locator(`[data-part="${name}"]`);
const audit = (page: Page) => page.getByRole("complementary", { name: "审计" });
const rows = (page: Page) => audit(page).getByRole("listitem");
const awaiting = (page: Page) => page.getByText("等待补充信息");

/** The table of the last answer has so many rows. */
const lists = (page: Page, count: number) => comesTo(card(page).locator("tbody tr"), count);

/** Says something and waits until there is an answer to it. */
async function say(page: Page, text: string): Promise<void> {
  // A page that still works on something takes no message.
  await page.getByRole("button", { name: "发送" }).waitFor();
  const before = await said(page).count();
  await composer(page).fill(text);
  await page.keyboard.press("Enter");
  await said(page).nth(before).waitFor();
  await working(page).waitFor({ state: "detached" });
}

/** What was sent: the last word of the path, and the body. */
const posts = ({ sent }: Visit) => sent.map(([, path, body]) => [path.split("/").at(-1), body]);

const sessionOf = (page: Page) =>
  new URLSearchParams(new URL(page.url()).hash.slice(1)).get("session");

/** A row of the trace endpoint, as far as the panel shows it. */
interface TraceEvent {
  seq: number;
  step: string;
  event_type: string;
  payload: { method?: string; error?: { message: string } | null };
}

async function openAudit(page: Page): Promise<void> {
  const toggle = page.getByRole("button", { name: "审计", exact: true });
  if ((await toggle.getAttribute("aria-expanded")) === "false") await toggle.click();
  await audit(page).waitFor();
}

/** Closes the panel by keyboard. */
async function closeAudit(page: Page): Promise<void> {
  await page.getByRole("button", { name: "收起审计面板" }).focus();
  await page.keyboard.press("Enter");
  await audit(page).waitFor({ state: "detached" });
}

/** The panel shows exactly the rows of the trace endpoint. */
async function compareAudit(page: Page, url: string): Promise<TraceEvent[]> {
  const session = sessionOf(page);
  const path = new URL(url).pathname.replace(/\/(ui)?$/, "");
  const trace = await page.request.get(
    new URL(`${path}/api/v1/reasoning/sessions/${session}/trace`, url).href,
  );
  const { events }: { events: TraceEvent[] } = (await trace.json()).data;
  assert.ok(events.length > 10, `${events.length} rows`);
  await audit(page).locator(`[data-seq="${events.length}"]`).waitFor();
  const shown = await rows(page).evaluateAll((items) =>
    items.map((item) => {
      const text = (name: string) => item.querySelector(`[data-part="${name}"]`)?.textContent;
      const method = text("method")?.split(" · ")[0];
      const { seq, step } = item.dataset;
      return { seq: Number(seq), step, type: text("type"), method, error: text("error") };
    }),
  );
  assert.equal(shown.length, events.length);
  for (const [index, { seq, step, event_type: type, payload }] of events.entries()) {
    const row = shown[index];
    assert.deepEqual([row?.seq, row?.step, row?.type], [seq, step, type]);
    if (payload.method) assert.equal(row?.method, payload.method);
    const isShown = row?.error?.includes(payload.error?.message ?? "") ?? false;
    assert.equal(isShown, Boolean(payload.error));
  }
  return events;
}

/** Opens a row by keyboard: its payload is that of the trace. */
async function openRow(page: Page, events: TraceEvent[]): Promise<void> {
  const at = events.findIndex((event) => event.event_type === "mcp_call_completed");
  const row = rows(page).nth(at);
  await row.locator("summary").focus();
  await page.keyboard.press("Enter");
  await row.locator("pre").waitFor();
  const whole = row.getByRole("button", { name: /显示全部/ });
  if (await whole.count()) await whole.click();
  assert.deepEqual(JSON.parse(await textOf(row.locator("pre"))), events[at]?.payload);
}

async function completes(visit: Visit): Promise<void> {
  const { page, viewport } = visit;
  await visit.look("reasoning-welcome");
  await say(page, "客户张伟的订单");
  assert.match(await textOf(part(card(page), "summary")), /张伟|订单|3/);
  await lists(page, 3);
  await card(page).getByRole("definition").getByText("订单").first().waitFor();
  await visit.look("reasoning-answer");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
  assert.deepEqual(posts(visit), [
    ["sessions", { user_input: "客户张伟的订单" }],
    ["run", {}],
    ["run", { user_input: "统计各区域的客户数量" }],
  ]);
  await openAudit(page);
  const { width } = await boxOf(audit(page));
  assert.equal(width, viewport.width <= 400 ? viewport.width : 360);
  await openRow(page, await compareAudit(page, visit.url));
  await visit.look("reasoning-audit");
  await closeAudit(page);
  await page.waitForFunction(() => document.activeElement?.textContent === "审计");
  await visit.look("reasoning-further");
  await page.getByRole("button", { name: "新会话" }).click();
  await comesTo(cards(page), 0);
  await page.waitForURL(({ hash }) => hash === "");
}

async function clarifies(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "火星天气");
  await page
    .locator('[data-entry="asked"]')
    .getByText(/请补充更具体的业务要素或字段/)
    .waitFor();
  await awaiting(page).waitFor();
  await page.getByLabel("补充信息", { exact: true }).waitFor();
  await visit.look("reasoning-asking");
  await say(page, "统计各区域的客户数量");
  await comesTo(awaiting(page), 0);
  await lists(page, 4);
  assert.deepEqual(posts(visit), [
    ["sessions", { user_input: "火星天气" }],
    ["run", {}],
    ["clarify", { answer: { type: "clarification", text: "统计各区域的客户数量" } }],
    ["run", {}],
  ]);
  await openAudit(page);
  const types = (await compareAudit(page, visit.url)).map(({ event_type: type }) => type);
  assert.ok(types.includes("clarification_asked") && types.includes("clarification_answered"));
  await visit.look("reasoning-answered");
}

/** No model answers; what is said is shown as it is, and markup in a message stays text. */
async function fails(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(REFUSED);
  await say(page, MARKUP);
  assert.equal(await said(page).last().textContent(), MARKUP);
  assert.match(await textOf(page.getByRole("alert")), /llm decision failed.*9000/);
  await visit.look("reasoning-failed");
  const again = page.waitForResponse((answer) => answer.url().endsWith("/run"));
  await page.getByRole("button", { name: "重试" }).click();
  await again;
  await page.getByRole("alert").waitFor();
  assert.deepEqual(posts(visit).slice(1), [
    ["run", {}],
    ["run", {}],
  ]);
  await openAudit(page);
  await part(audit(page), "error").first().waitFor();
  await visit.look("reasoning-audit");
}

/** A run is stopped, which closes the session; the next message begins another one. */
async function stops(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(REFUSED);
  await composer(page).fill("慢慢统计客户");
  await page.keyboard.press("Enter");
  const stop = page.getByRole("button", { name: "停止" });
  await stop.waitFor();
  await visit.look("reasoning-running");
  await stop.click();
  await page.getByText("已停止。下一条消息将开始新的会话。").waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  const closed = sessionOf(page);
  await say(page, "设备状态分布");
  assert.notEqual(sessionOf(page), closed);
  assert.equal(await said(page).count(), 2, "what was said before stays in sight");
  await part(card(page), "summary").waitFor();
  await visit.look("reasoning-stopped");
}

/** A reload continues the session, and tabs that show one session agree. */
async function reloads(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "火星天气");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
  const texts = (tab: Page) => tab.locator("article, [data-entry]").allTextContents();
  const before = await texts(page);
  await page.reload();
  await eventually(async () => assert.deepEqual(await texts(page), before));
  const other = await visit.tab(page.url());
  await answers(other).waitFor();
  await say(page, "设备状态分布");
  await answers(other).nth(1).waitFor();
  await eventually(async () => assert.deepEqual(await texts(other), await texts(page)));
  await openAudit(other);
  await compareAudit(other, visit.url);
  await visit.look("reasoning-second tab", other);
  await page.goBack();
  // Before there was a session.
  await comesTo(said(page), 0);
}

/** A reload in the middle of a run finds it, and its end. */
async function midway(visit: Visit): Promise<void> {
  const { page } = visit;
  await composer(page).fill("慢慢统计各区域的客户数量");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("session="));
  await page.reload();
  await working(page).waitFor();
  await order("open");
  await answers(page).waitFor();
  assert.equal(await said(page).count(), 1);
  assert.deepEqual(
    posts(visit).map(([what]) => what),
    ["sessions", "run"],
  );
  await working(page).waitFor({ state: "detached" });
}

/** The server is away: the page says so, keeps what was written, and continues when it is back. */
async function away(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "设备状态分布");
  await visit.away();
  await composer(page).fill("统计各区域的客户数量");
  await page.keyboard.press("Enter");
  await page.getByText("连接已断开，正在重连…").waitFor();
  // A telephone opens the panel, which the look is about as well, only on demand.
  await openAudit(page);
  await visit.look("reasoning-away");
  await closeAudit(page);
  await visit.back();
  await page.getByText("连接已断开，正在重连…").waitFor({ state: "detached" });
  await working(page).waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector("textarea")?.value !== "");
  assert.equal(await composer(page).inputValue(), "统计各区域的客户数量");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
}

/** The server is killed while the page waits and in the middle of a run, and started again. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A server that starts refuses what is asked of it.
  visit.expect(/net::ERR|Failed to fetch|status of 503/);
  const lost = page.getByText("连接已断开，正在重连…");
  const question = "统计各区域的客户数量";
  await say(page, "设备状态分布");
  await order("kill");
  await composer(page).fill(question);
  await page.keyboard.press("Enter");
  await lost.waitFor();
  await visit.look("reasoning-killed");
  await order("start");
  await lost.waitFor({ state: "detached" });
  // The server has not got the message, so the text is kept.
  await eventually(async () => assert.equal(await composer(page).inputValue(), question));
  const isHeld = await new Standin(visit.url).hold({ model: "reasoning" });
  await page.getByRole("button", { name: "发送" }).click();
  await isHeld();
  await order("kill");
  await lost.waitFor();
  await order("start");
  // The run continues in the new process, and the page shows its answer.
  await answers(page).nth(1).waitFor();
  await lists(page, 4);
  await lost.waitFor({ state: "detached" });
  await page.reload();
  await answers(page).nth(1).waitFor();
  await comesTo(said(page), 2);
  // The page itself sends nothing again.
  assert.deepEqual(posts(visit), [
    ["sessions", { user_input: "设备状态分布" }],
    ["run", {}],
    ["run", { user_input: question }],
    ["run", { user_input: question }],
  ]);
}

/** Two clicks on the button send one message. */
async function twice(visit: Visit): Promise<void> {
  const { page } = visit;
  await composer(page).fill("设备状态分布");
  await page.getByRole("button", { name: "发送" }).dblclick();
  await answers(page).waitFor();
  await working(page).waitFor({ state: "detached" });
  assert.deepEqual(
    posts(visit).map(([what]) => what),
    ["sessions", "run"],
  );
  assert.equal(await said(page).count(), 1);
}

/**
 * Everything can be reached without a pointer, in the order of the page, on a desktop: a telephone
 * has no key `Tab`.
 */
async function keyboard(visit: Visit): Promise<void> {
  const { page } = visit;
  const focused = () =>
    page.evaluate(() => {
      const { activeElement: at } = document;
      if (at === null) return "nothing";
      const { outlineStyle } = getComputedStyle(at);
      const name = at.ariaLabel ?? at.textContent?.trim() ?? "";
      // The frame around the composer shows its focus.
      return at.tagName === "TEXTAREA" || outlineStyle !== "none" ? name : `${name}, unseen`;
    });
  // The page begins where the user writes.
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  const names = [await focused()];
  for (let step = 0; step < 5; step += 1) {
    await page.keyboard.press("Shift+Tab");
    names.push(await focused());
  }
  // The name of the button for the theme ends with the theme.
  const beginnings = names.map((name) => name.replace(/^(主题)：.*/, "$1"));
  assert.deepEqual(beginnings, ["问题", "对话", "主题", "审计", "新会话", "跳到主要内容"]);
  await page.keyboard.press("Enter");
  await page.getByRole("textbox").focus();
  await page.keyboard.type("设备状态分布");
  await page.keyboard.press("Enter");
  await answers(page).waitFor();
  await page.getByRole("button", { name: "审计", exact: true }).focus();
  const isOpen = (await audit(page).count()) > 0;
  if (!isOpen) await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "收起审计面板" }).focus();
  await page.keyboard.press("Escape");
  await audit(page).waitFor({ state: "detached" });
}

/** What a model and a plan say is text, whatever it is. */
async function hostile(visit: Visit): Promise<void> {
  const { page } = visit;
  await say(page, "查询手机号13800138000的客户");
  assert.match(await textOf(part(card(page), "summary")), /<script>.*<img src=x/);
  await card(page)
    .getByText(/未执行：<svg onload=alert\(2\)>/)
    .waitFor();
  await page.getByText("查询计划").click();
  await visit.look("reasoning-hostile-card");
  await openAudit(page);
  const summaries = await rows(page).locator("summary").all();
  for (const summary of summaries) await summary.click();
  // What a row holds is made after it has opened.
  await comesTo(part(audit(page), "payload"), summaries.length);
  const made = await page
    .locator("#root")
    .evaluate(
      (root) => root.querySelectorAll("img, script, svg, iframe, [onerror], [onload]").length,
    );
  assert.equal(made, 0);
  await visit.look("reasoning-hostile");
}

await run({
  completes: both(completes),
  clarifies: onPhone(clarifies),
  fails: onPhone(fails),
  stops: onPhone(stops),
  reloads: onPhone(reloads),
  midway: onPhone(midway),
  away: onPhone(away),
  outlives: onPhone(outlives),
  twice: onPhone(twice),
  keyboard,
  hostile: onPhone(hostile),
});
