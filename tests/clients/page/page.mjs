// A user at a real browser: `node page.mjs <scenario> <url of the page> <folder for pictures>`.
//
// Ends with an error if the page does not do what the scenario expects of it. The browser may
// reach nothing but this machine.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [scenario, url, pictures] = process.argv.slice(2);

/** A desktop and a telephone. */
const SIZES = [{ width: 1280, height: 800 }, { width: 375, height: 720 }];

const FLAGS = [
  "--no-sandbox",
  "--no-proxy-server",
  "--disable-background-networking",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** What a browser says of an answer that is an error; expected where the scenario has one. */
const BAD_ANSWER = "Failed to load resource: the server responded with a status of 4";

/** A page of a size, with what it sent and what it complained about. */
async function visit(browser, viewport) {
  const page = await browser.newPage({ viewport, locale: "zh-CN" });
  const seen = { posts: [], complaints: [], hosts: new Set() };
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (request.url().startsWith("data:")) return;
    const { host, pathname } = new URL(request.url());
    seen.hosts.add(host);
    if (request.method() !== "POST") return;
    const what = pathname.split("/").at(-1);
    seen.posts.push([what, JSON.parse(request.postData() ?? "null")]);
  });
  await page.goto(url);
  return Object.assign(seen, { page, viewport });
}

async function say(page, text) {
  await page.getByRole("textbox").fill(text);
  await page.keyboard.press("Enter");
  await page.locator(".working").waitFor({ state: "detached" });
}

/** Everything that can be seen ends within the screen, or within something that scrolls. */
async function fits({ page, viewport }, name) {
  const wide = await page.evaluate(() => {
    const scrolls = (element) => element.closest(".rows, pre");
    const over = [...document.querySelectorAll("body *")].filter((element) => {
      const box = element.getBoundingClientRect();
      const inside = scrolls(element) && scrolls(element) !== element;
      return box.width > 0 && !inside && (box.right > innerWidth + 0.5 || box.left < -0.5);
    });
    const { scrollWidth } = document.documentElement;
    const names = over.map(({ tagName, id, className }) => `${tagName}#${id}.${className}`);
    return scrollWidth > innerWidth ? [`the document: ${scrollWidth}`, ...names] : names;
  });
  await page.screenshot({ path: `${pictures}/${scenario}-${name}-${viewport.width}.png` });
  assert.deepEqual(wide, [], `${name} is wider than ${viewport.width}`);
}

async function openAudit(page) {
  const toggle = page.getByRole("button", { name: "审计", exact: true });
  if ((await toggle.getAttribute("aria-expanded")) === "false") await toggle.click();
  await page.getByRole("complementary", { name: "审计" }).waitFor();
}

/** The panel shows exactly the rows of the trace endpoint. */
async function compareAudit(page) {
  const session = (await page.locator("#session").textContent()).split(" ").at(-1);
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
  assert.deepEqual(JSON.parse(await row.locator("pre").textContent()), events[at].payload);
}

async function completes(visited) {
  const { page, posts, viewport } = visited;
  await fits(visited, "welcome");
  await say(page, "客户张伟的订单");
  const card = page.locator(".card").last();
  assert.match(await card.locator(".summary").textContent(), /张伟|订单|3/);
  assert.equal(await card.locator("tbody tr").count(), 3);
  assert.match(await card.locator(".facts").textContent(), /订单/);
  await fits(visited, "answer");
  await say(page, "统计各区域的客户数量");
  assert.equal(await page.locator(".card").last().locator("tbody tr").count(), 4);
  assert.deepEqual(posts, [
    ["sessions", { user_input: "客户张伟的订单" }],
    ["run", {}],
    ["run", { user_input: "统计各区域的客户数量" }],
  ]);
  await openAudit(page);
  const { width } = await page.locator("#audit").boundingBox();
  assert.equal(width, Math.min(viewport.width <= 400 ? viewport.width : 360, viewport.width));
  await openRow(page, await compareAudit(page));
  await fits(visited, "audit");
  await page.getByRole("button", { name: "收起审计面板" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("#audit").waitFor({ state: "hidden" });
  assert.equal(await page.evaluate(() => document.activeElement.id), "toggle");
  await fits(visited, "further");
  await page.getByRole("button", { name: "新会话" }).click();
  assert.equal(await page.locator(".card").count(), 0);
}

async function clarifies(visited) {
  const { page, posts } = visited;
  await say(page, "火星天气");
  assert.match(await page.locator(".asking").textContent(), /请补充更具体的业务要素或字段/);
  assert.ok(await page.locator("#awaiting").isVisible());
  await page.getByLabel("补充信息", { exact: true }).waitFor();
  await fits(visited, "asking");
  await say(page, "统计各区域的客户数量");
  assert.ok(await page.locator("#awaiting").isHidden());
  assert.equal(await page.locator(".card").last().locator("tbody tr").count(), 4);
  assert.deepEqual(posts, [
    ["sessions", { user_input: "火星天气" }],
    ["run", {}],
    ["clarify", { answer: { type: "clarification", text: "统计各区域的客户数量" } }],
    ["run", {}],
  ]);
  await openAudit(page);
  const { rows } = await compareAudit(page);
  const types = rows.map(({ type }) => type);
  assert.ok(types.includes("clarification_asked") && types.includes("clarification_answered"));
  await fits(visited, "answered");
}

/** No model answers; what is said is shown as it is, and markup in a message stays text. */
async function fails(visited) {
  const { page, posts } = visited;
  const text = "统计<img src=x onerror=alert(1)>各区域的客户数量";
  await say(page, text);
  assert.equal(await page.locator(".said").last().textContent(), text);
  assert.match(await page.getByRole("alert").textContent(), /llm decision failed/);
  await fits(visited, "failed");
  await page.getByRole("button", { name: "重试" }).click();
  await page.getByRole("alert").nth(1).waitFor();
  assert.deepEqual(posts.slice(1), [["run", {}], ["run", {}]]);
  await openAudit(page);
  await page.locator(".event.bad .error").first().waitFor();
  await fits(visited, "audit");
  visited.complaints = visited.complaints.filter((text) => !text.startsWith(BAD_ANSWER));
}

mkdirSync(pictures, { recursive: true });
const executablePath = process.env.CHROMIUM;
const browser = await chromium.launch({ executablePath, args: FLAGS });
try {
  for (const size of SIZES) {
    const visited = await visit(browser, size);
    await { completes, clarifies, fails }[scenario](visited);
    assert.deepEqual(visited.complaints, []);
    assert.deepEqual([...visited.hosts], [new URL(url).host]);
    await visited.page.close();
  }
} finally {
  await browser.close();
}
