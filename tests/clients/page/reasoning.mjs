// The page of the reasoning app, used by a person in a real browser.

import assert from "node:assert/strict";
import { both, comesTo, eventually, onPhone, order, run } from "./visit.mjs";

const MARKUP = "统计<img src=x onerror=alert(1)>各区域的客户数量";

/** What a browser says of an answer that is an error, and of requests without a connection. */
const REFUSED = /the server responded with a status of 4/;

const composer = (page) => page.getByRole("textbox");
const card = (page) => page.locator(".card").last();

/** The table of the last answer has so many rows. */
const lists = (page, count) => comesTo(card(page).locator("tbody tr"), count);

/** Says something and waits until there is an answer to it. */
async function say(page, text) {
  const said = page.locator(".w-said");
  // A page that still works on something takes no message.
  await page.getByRole("button", { name: "发送" }).waitFor();
  const before = await said.count();
  await composer(page).fill(text);
  await page.keyboard.press("Enter");
  await said.nth(before).waitFor();
  await page.locator(".working").waitFor({ state: "detached" });
}

/** What was sent: the last word of the path, and the body. */
const posts = ({ sent }) => sent.map(([, path, body]) => [path.split("/").at(-1), body]);

const sessionOf = async (page) => (await page.locator("#session").textContent()).split(" ").at(-1);

async function openAudit(page) {
  const toggle = page.getByRole("button", { name: "审计", exact: true });
  if ((await toggle.getAttribute("aria-expanded")) === "false") await toggle.click();
  await page.getByRole("complementary", { name: "审计" }).waitFor();
}

/** The panel shows exactly the rows of the trace endpoint. */
async function compareAudit({ page, url }) {
  const session = await sessionOf(page);
  const path = new URL(url).pathname.replace(/\/(ui)?$/, "");
  const trace = await page.request.get(
    new URL(`${path}/api/v1/reasoning/sessions/${session}/trace`, url).href,
  );
  const { events } = (await trace.json()).data;
  assert.ok(events.length > 10, `${events.length} rows`);
  await page.locator(`#events > li[data-seq="${events.length}"]`).waitFor();
  const rows = await page.locator("#events > li").evaluateAll((items) =>
    items.map((item) => {
      const text = (name) => item.querySelector(name)?.textContent;
      const method = text(".method")?.split(" · ")[0];
      return { seq: Number(text(".seq")), step: item.dataset.step, type: text(".type"), method,
        error: text(".error") };
    }),
  );
  assert.equal(rows.length, events.length);
  events.forEach(({ seq, step, event_type: type, payload }, index) => {
    const row = rows[index];
    assert.deepEqual([row.seq, row.step, row.type], [seq, step, type]);
    if (payload.method) assert.equal(row.method, payload.method);
    assert.equal(row.error?.includes(payload.error?.message) ?? false, Boolean(payload.error));
  });
  return { events, rows };
}

/** Opens a row by keyboard: its payload is that of the trace. */
async function openRow(page, { events }) {
  const at = events.findIndex((event) => event.event_type === "mcp_call_completed");
  const row = page.locator("#events > li").nth(at);
  await row.locator("summary").focus();
  await page.keyboard.press("Enter");
  await row.locator("pre").waitFor();
  const whole = row.getByRole("button", { name: /显示全部/ });
  if (await whole.count()) await whole.click();
  assert.deepEqual(JSON.parse(await row.locator("pre").textContent()), events[at].payload);
}

async function completes(visit) {
  const { page, viewport } = visit;
  await visit.look("reasoning-welcome");
  await say(page, "客户张伟的订单");
  assert.match(await card(page).locator(".summary").textContent(), /张伟|订单|3/);
  await lists(page, 3);
  assert.match(await card(page).locator(".facts").textContent(), /订单/);
  await visit.look("reasoning-answer");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
  assert.deepEqual(posts(visit), [
    ["sessions", { user_input: "客户张伟的订单" }],
    ["run", {}],
    ["run", { user_input: "统计各区域的客户数量" }],
  ]);
  await openAudit(page);
  const { width } = await page.locator("#audit").boundingBox();
  assert.equal(width, viewport.width <= 400 ? viewport.width : 360);
  await openRow(page, await compareAudit(visit));
  await visit.look("reasoning-audit");
  await page.getByRole("button", { name: "收起审计面板" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("#audit").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement.id === "toggle");
  await visit.look("reasoning-further");
  await page.getByRole("button", { name: "新会话" }).click();
  await comesTo(page.locator(".card"), 0);
  await page.waitForURL(({ hash }) => hash === "");
}

async function clarifies(visit) {
  const { page } = visit;
  await say(page, "火星天气");
  assert.match(await page.locator(".asking").textContent(), /请补充更具体的业务要素或字段/);
  assert.ok(await page.locator("#awaiting").isVisible());
  await page.getByLabel("补充信息", { exact: true }).waitFor();
  await visit.look("reasoning-asking");
  await say(page, "统计各区域的客户数量");
  await comesTo(page.locator("#awaiting"), 0);
  await lists(page, 4);
  assert.deepEqual(posts(visit), [
    ["sessions", { user_input: "火星天气" }],
    ["run", {}],
    ["clarify", { answer: { type: "clarification", text: "统计各区域的客户数量" } }],
    ["run", {}],
  ]);
  await openAudit(page);
  const { rows } = await compareAudit(visit);
  const types = rows.map(({ type }) => type);
  assert.ok(types.includes("clarification_asked") && types.includes("clarification_answered"));
  await visit.look("reasoning-answered");
}

/** No model answers; what is said is shown as it is, and markup in a message stays text. */
async function fails(visit) {
  const { page } = visit;
  visit.expect(REFUSED);
  await say(page, MARKUP);
  assert.equal(await page.locator(".w-said").last().textContent(), MARKUP);
  assert.match(await page.getByRole("alert").textContent(), /llm decision failed.*9000/);
  await visit.look("reasoning-failed");
  const again = page.waitForResponse((answer) => answer.url().endsWith("/run"));
  await page.getByRole("button", { name: "重试" }).click();
  await again;
  await page.getByRole("alert").waitFor();
  assert.deepEqual(posts(visit).slice(1), [["run", {}], ["run", {}]]);
  await openAudit(page);
  await page.locator(".event.bad .error").first().waitFor();
  await visit.look("reasoning-audit");
}

/** A run is stopped, which closes the session; the next message begins another one. */
async function stops(visit) {
  const { page } = visit;
  visit.expect(REFUSED);
  await composer(page).fill("慢慢统计客户");
  await page.keyboard.press("Enter");
  const stop = page.getByRole("button", { name: "停止" });
  await stop.waitFor();
  await visit.look("reasoning-running");
  await stop.click();
  await page.getByText("已停止。下一条消息将开始新的会话。").waitFor();
  await page.waitForFunction(() => document.activeElement.tagName === "TEXTAREA");
  const closed = await sessionOf(page);
  await say(page, "设备状态分布");
  assert.notEqual(await sessionOf(page), closed);
  assert.equal(await page.locator(".w-said").count(), 2, "what was said before stays in sight");
  await card(page).locator(".summary").waitFor();
  await visit.look("reasoning-stopped");
}

/** A reload goes on with the session, and tabs that show one session agree. */
async function reloads(visit) {
  const { page } = visit;
  await say(page, "火星天气");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
  const texts = (tab) => tab.locator(".w-said, .card").allTextContents();
  const before = await texts(page);
  await page.reload();
  await eventually(async () => assert.deepEqual(await texts(page), before));
  const other = await visit.tab(page.url());
  await other.locator(".answer").waitFor();
  await say(page, "设备状态分布");
  await other.locator(".answer").nth(1).waitFor();
  await eventually(async () => assert.deepEqual(await texts(other), await texts(page)));
  await openAudit(other);
  await compareAudit({ page: other, url: visit.url });
  await visit.look("reasoning-second tab", other);
  await page.goBack();
  // Before there was a session.
  await comesTo(page.locator(".w-said"), 0);
}

/** A reload in the middle of a run finds it, and its end. */
async function midway(visit) {
  const { page } = visit;
  await composer(page).fill("慢慢统计各区域的客户数量");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("session="));
  await page.reload();
  await page.locator(".working").waitFor();
  await order("open");
  await page.locator(".answer").waitFor();
  assert.equal(await page.locator(".w-said").count(), 1);
  assert.deepEqual(posts(visit).map(([what]) => what), ["sessions", "run"]);
  await page.locator(".working").waitFor({ state: "detached" });
}

/** The server is away: the page says so, keeps what was written, and goes on when it is back. */
async function away(visit) {
  const { page } = visit;
  await say(page, "设备状态分布");
  await visit.away();
  await composer(page).fill("统计各区域的客户数量");
  await page.keyboard.press("Enter");
  await page.getByText("连接已断开，正在重连…").waitFor();
  await visit.look("reasoning-away");
  await visit.back();
  await page.getByText("连接已断开，正在重连…").waitFor({ state: "detached" });
  await page.locator(".working").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector("textarea").value !== "");
  assert.equal(await composer(page).inputValue(), "统计各区域的客户数量");
  await say(page, "统计各区域的客户数量");
  await lists(page, 4);
}

/** Two clicks on the button send one message. */
async function twice(visit) {
  const { page } = visit;
  await composer(page).fill("设备状态分布");
  await page.getByRole("button", { name: "发送" }).dblclick();
  await page.locator(".answer").waitFor();
  await page.locator(".working").waitFor({ state: "detached" });
  assert.deepEqual(posts(visit).map(([what]) => what), ["sessions", "run"]);
  assert.equal(await page.locator(".w-said").count(), 1);
}

/** Everything can be reached without a pointer, in the order of the page. */
async function keyboard(visit) {
  const { page } = visit;
  const focused = () => page.evaluate(() => {
    const { activeElement: at } = document;
    const { outlineStyle } = getComputedStyle(at);
    const name = at.ariaLabel ?? at.textContent.trim();
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
  names[2] = names[2].slice(0, 2);
  assert.deepEqual(names, ["问题", "对话", "主题", "审计", "新会话", "跳到主要内容"]);
  await page.keyboard.press("Enter");
  await page.getByRole("textbox").focus();
  await page.keyboard.type("设备状态分布");
  await page.keyboard.press("Enter");
  await page.locator(".answer").waitFor();
  await page.getByRole("button", { name: "审计", exact: true }).focus();
  const isOpen = (await page.locator("#audit").count()) > 0;
  if (!isOpen) await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "收起审计面板" }).focus();
  await page.keyboard.press("Escape");
  await page.locator("#audit").waitFor({ state: "detached" });
}

/** What a model and a plan say is text, whatever it is. */
async function hostile(visit) {
  const { page } = visit;
  await say(page, "查询手机号13800138000的客户");
  assert.match(await card(page).locator(".summary").textContent(), /<script>.*<img src=x/);
  assert.match(await card(page).locator(".ignored").textContent(), /<svg onload=alert\(2\)>/);
  await page.getByText("查询计划").click();
  await visit.look("reasoning-hostile-card");
  await openAudit(page);
  const summaries = await page.locator("#events summary").all();
  for (const summary of summaries) await summary.click();
  // What a row holds is made after it has opened.
  await comesTo(page.locator("#events .payload"), summaries.length);
  const made = await page.locator("#root").evaluate((root) =>
    root.querySelectorAll("img, script, svg, iframe, [onerror], [onload]").length);
  assert.equal(made, 0);
  await visit.look("reasoning-hostile");
}

await run({
  completes: both(completes), clarifies: onPhone(clarifies), fails: onPhone(fails), stops, reloads, midway, away,
  twice, keyboard, hostile: onPhone(hostile),
});
