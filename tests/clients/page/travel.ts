// A user at the page of travel guides; see `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import {
  APIFY,
  card,
  completed,
  field,
  idle,
  isNarrow,
  made,
  PICTURES,
  part,
  radio,
  sentTo,
  session,
  sessionId,
  side,
  standin,
  start,
  state,
  status,
  URL_OF_PAGE,
  VIDEO,
  WISHES,
  withPictures,
} from "./travel-page.ts";
import {
  both,
  boxOf,
  comesTo,
  eventually,
  onPhone,
  order,
  run,
  type Visit,
  valueAt,
} from "./visit.ts";

const FIRST = `${VIDEO}\n\n${WISHES}`;

/** What the server makes of a first message that is only `VIDEO`. */
const REQUEST =
  "Create a travel guide from this video: https://www.youtube.com/watch?v=dQw4w9WgXcQ";

const CHAT_MODEL = "/v1/chat/completions";

const TOOLS = [
  "parse_youtube_input",
  "crawl_youtube_videos",
  "build_travel_blocks",
  "resolve_spot_coordinates",
  "generate_image",
  "generate_handbook_html",
];

/** The least time between the last edit and its request, in milliseconds. */
const DEBOUNCE_MS = 900;

/** The start sends once, the cards tell, the blocks open, the page is framed. */
async function guide(visit: Visit): Promise<void> {
  const { page } = visit;
  withPictures(visit);
  await visit.look("home");
  await page.getByRole("button", { name: "开始生成" }).click();
  await page.getByRole("alert").waitFor();
  assert.deepEqual(visit.sent, []);
  await standin.hold({ path: PICTURES });
  await page.getByLabel("视频链接").fill(VIDEO);
  await page.getByLabel("旅行要求（可选）").fill(WISHES);
  await page.getByRole("button", { name: "开始生成" }).dblclick();
  await page.waitForURL(/\/session\/[^?]+$/);
  // The blocks open by themselves, while the pictures are still made.
  await page.getByRole("listitem", { name: "内容块 1", exact: true }).waitFor();
  await eventually(async () => assert.ok(await radio(page, "Blocks").isChecked()));
  await eventually(async () => assert.match(await field(page, 1, "纬度").inputValue(), /^35[.]/));
  await visit.look("blocks");
  await side(visit, "对话");
  await state(page, "generate_image", "running");
  await visit.look("running");
  await standin.release();
  await state(page, "generate_handbook_html", "done");
  await side(visit, "对话");
  await completed(page);
  await talked(visit);
  await framed(visit);
  await sentOnce(visit);
  await standin.forget();
}

/** The card of each tool is there once and done. */
function allDone(page: Page): Promise<void> {
  const cards = () =>
    page
      .locator(".w-tool")
      .evaluateAll((all) => all.map(({ dataset }) => [dataset.tool, dataset.state]));
  const done = TOOLS.map((tool) => [tool, "done"]);
  return eventually(async () => assert.deepEqual(await cards(), done));
}

/** First message above, all others in the list; six cards with summaries. */
async function talked(visit: Visit): Promise<void> {
  const { page } = visit;
  assert.equal(await part(page, "first").innerText(), FIRST);
  const log = page.getByRole("log");
  assert.equal(await log.getByText(VIDEO).count(), 0, "the first message is shown once");
  await allDone(page);
  const crawled = card(page, "crawl_youtube_videos");
  assert.match(await crawled.locator(".w-tool-summary").innerText(), /已抓取 1 个视频：/);
  await crawled.locator("summary").focus();
  await page.keyboard.press("Enter");
  const output = await crawled.getByLabel("抓取视频信息的输出").innerText();
  assert.equal(JSON.parse(output).count, 1);
  assert.match(await card(page, "build_travel_blocks").innerText(), /6 个内容块，其中景点/);
  const { finalTime } = await session(page);
  assert.equal(await part(page, "summary").locator("time").getAttribute("datetime"), finalTime);
  await visit.look("answered");
}

/** The page in its frame, and both views of the guide without making anything again. */
async function framed(visit: Visit): Promise<void> {
  const { page, sent } = visit;
  const guides: string[] = [];
  // The frame is filled once, whether it can be seen or not.
  await page.frameLocator("iframe").getByText("Watch Origin Video").waitFor({ state: "attached" });
  page.on("request", (request) => {
    if (request.url().includes("/api/guide/")) guides.push(request.url());
  });
  await side(visit, "手册");
  await eventually(async () => assert.ok(await radio(page, "HTML").isChecked()));
  const frame = page.locator("iframe");
  await page.frameLocator("iframe").getByText("Watch Origin Video").waitFor();
  const attribute = async (name: string) => (await frame.getAttribute(name)) ?? "";
  assert.doesNotMatch(await attribute("sandbox"), /^$|allow-same-origin|allow-scripts/);
  assert.match(await attribute("src"), new RegExp(`/api/guide/${sessionId(page)}[?]`));
  for (const [name, width] of Object.entries({
    "手机 375": 375,
    "桌面 720": 720,
    "宽屏 1280": 1280,
  })) {
    await radio(page, name).check();
    await eventually(async () => assert.equal(await frame.evaluate((it) => it.clientWidth), width));
    if (width === (isNarrow(visit) ? 375 : 720)) await visit.look("html");
  }
  const before = sent.length;
  await radio(page, "Blocks").check();
  await page.getByRole("listitem", { name: "内容块 1", exact: true }).waitFor();
  await frame.waitFor({ state: "hidden" });
  await radio(page, "HTML").check();
  await page.frameLocator("iframe").getByText("Watch Origin Video").waitFor();
  await side(visit, "对话");
  await page.getByRole("button", { name: "Edit blocks" }).click();
  await page.getByRole("listitem", { name: "内容块 1", exact: true }).waitFor();
  assert.deepEqual([sent.length, guides], [before, []], "views are switched, nothing is made");
}

/** One click, one session, one message; also when the page is loaded again with its message. */
async function sentOnce(visit: Visit): Promise<void> {
  const { page } = visit;
  const plain = page.url();
  await page.reload();
  await page.goto(`${plain}?initial=${encodeURIComponent("again")}`);
  await page.waitForURL(plain);
  await side(visit, "对话");
  await completed(page);
  assert.equal(sentTo(visit, "POST", "/api/sessions").length, 1);
  const chats = sentTo(visit, "POST", "/api/chat");
  assert.equal(chats.length, 1);
  const body = valueAt(chats, 0, 2);
  const text = valueAt(body, "messages", 0, "parts", 0, "text");
  const sent = [valueAt(body, "sessionId"), valueAt(body, "messages", "length"), text];
  assert.deepEqual(sent, [sessionId(page), 1, FIRST]);
}

/** A shared address with a message starts the chat once, and a reload does not. */
async function initial(visit: Visit): Promise<void> {
  const { page } = visit;
  withPictures(visit);
  const made = await page.request.post(new URL("api/sessions", visit.url).href, { data: {} });
  const { id } = await made.json();
  await standin.hold({ path: APIFY });
  const address = new URL(`session/${id}`, visit.url).href;
  const message = encodeURIComponent(VIDEO);
  await page.goto(`${address}?initial=${message}`);
  await page.waitForURL(address);
  await side(visit, "对话");
  await state(page, "crawl_youtube_videos", "running");
  assert.equal(await part(page, "first").innerText(), VIDEO);
  await page.goto(`${address}?initial=${message}`);
  await page.waitForURL(address);
  await side(visit, "对话");
  await state(page, "crawl_youtube_videos", "running");
  assert.equal(await part(page, "first").innerText(), REQUEST);
  await standin.release();
  await completed(page);
  assert.equal(sentTo(visit, "POST", "/api/chat").length, 1);
  await shared(visit);
  await standin.forget();
}

/** Edits are saved after a pause, once, and other tabs show them. */
async function edits(visit: Visit): Promise<void> {
  const { page } = visit;
  await made(visit);
  await side(visit, "手册");
  await radio(page, "Blocks").check();
  const title = field(page, 1, "标题");
  // The note is shown as long as the pause, so the page itself looks for it, from before the edits.
  const noted = page.waitForFunction(() =>
    document.querySelector("[data-part='save']")?.textContent?.startsWith("有未保存的修改"),
  );
  const patched = page
    .waitForRequest((request) => request.method() === "PATCH")
    .then(() => Date.now());
  for (const text of ["A", "Ab"]) await title.fill(text);
  const editedAt = Date.now();
  await title.fill("Abc");
  await noted;
  await visit.look("editing");
  const pause = (await patched) - editedAt;
  assert.ok(pause >= DEBOUNCE_MS - 50, `saved ${pause} ms later`);
  await page.getByText("已保存", { exact: true }).waitFor();
  const patches = () => sentTo(visit, "PATCH", "/state");
  const titles = patches().map(([, , body]) => valueAt(body, "blocks", 0, "title"));
  assert.deepEqual(titles, ["Abc"]);
  assert.deepEqual(Object.keys(Object(valueAt(patches(), 0, 2))), ["blocks"]);
  await invalid(visit, title);
  await agree(visit, title);
  // What was edited last is saved also if the page is left at once.
  await title.fill("At the door");
  await page.goto(page.url());
  await side(visit, "手册");
  await radio(page, "Blocks").check();
  const typed = field(page, 1, "标题");
  await eventually(async () => assert.equal(await typed.inputValue(), "At the door"));
  const { blocks, spotBlocks } = (await session(page)).state;
  assert.equal(blocks[0].title, "At the door");
  const spots = blocks.filter(({ type }: { type: string }) => type === "spot");
  assert.deepEqual(spotBlocks, spots);
  await page.getByText("已保存", { exact: true }).waitFor();
}

/** What is wrong is said, and not saved. */
async function invalid(visit: Visit, title: Locator): Promise<void> {
  const { page } = visit;
  const patches = () => sentTo(visit, "PATCH", "/state").length;
  const before = patches();
  await title.fill(" ");
  await page.getByText("有错误，未保存").waitFor();
  await page.getByText("标题不能为空").waitFor();
  await visit.look("invalid");
  // One of both is wrong at any moment: what is right for the time of a pause would be saved.
  await field(page, 1, "纬度").fill("91");
  await page.getByText("请输入 -90 到 90 之间的数字").waitFor();
  await title.fill("Abc");
  await page.getByText("标题不能为空").waitFor({ state: "detached" });
  await page.getByText("有错误，未保存").waitFor();
  assert.equal(patches(), before);
  await field(page, 1, "纬度").fill("35.5");
  await field(page, 1, "经度").fill("139.5");
  await eventually(async () =>
    assert.deepEqual((await session(page)).state.blocks[0].location, { lat: 35.5, lng: 139.5 }),
  );
  await page.getByText("已保存", { exact: true }).waitFor();
}

/** Two tabs show the same blocks, whichever of them edits. */
async function agree(visit: Visit, title: Locator): Promise<void> {
  const { page } = visit;
  const other = await visit.tab(page.url());
  await side(visit, "手册", other);
  await radio(other, "Blocks").check();
  const theirs = field(other, 1, "标题");
  const shows = (shown: Locator, text: string) =>
    eventually(async () => assert.equal(await shown.inputValue(), text));
  await shows(theirs, "Abc");
  await theirs.fill("From the other tab");
  await shows(title, "From the other tab");
  await other.getByText("已保存", { exact: true }).waitFor();
  await title.fill("Back again");
  await shows(theirs, "Back again");
  await other.close();
}

/** The next answer about the session is on its way until `arrive()`, which ends when the page has it. */
async function delayRead(
  page: Page,
): Promise<{ asked: Promise<unknown>; arrive(): Promise<void> }> {
  const path = /[/]api[/]sessions[/][^/]+$/;
  const asked = page.waitForRequest(path);
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(
    path,
    async (route) => {
      const response = await route.fetch();
      await released;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  const arrive = async () => {
    release();
    await (await (await asked).response())?.finished();
  };
  return { asked, arrive };
}

/** Stop ends the run, says so, and the conversation continues from there. */
async function stop(visit: Visit): Promise<void> {
  const { page } = visit;
  withPictures(visit);
  await standin.hold({ path: APIFY });
  await start(visit);
  await state(page, "crawl_youtube_videos", "running");
  // Another tab says that something has changed, and what the page then reads comes behind the stop.
  const late = await delayRead(page);
  await page.evaluate((id) => {
    new BroadcastChannel(`wattle-travel-${id}`).postMessage(null);
  }, sessionId(page));
  await late.asked;
  await page.getByRole("button", { name: "停止" }).dblclick();
  await status(page, "CANCELLED").waitFor();
  await late.arrive();
  await page.getByRole("button", { name: "继续" }).waitFor();
  assert.equal(sentTo(visit, "POST", "/cancel").length, 1);
  assert.equal((await session(page)).status, "CANCELLED");
  await state(page, "crawl_youtube_videos", "cancelled");
  await visit.look("stopped");
  await standin.release();
  await page.getByRole("button", { name: "继续" }).click();
  await side(visit, "对话");
  await completed(page);
  assert.ok((await session(page)).state.handbookHtml);
  await standin.forget();
}

/** A reload in the middle, and a second tab, follow the run that is under way. */
async function reload(visit: Visit): Promise<void> {
  const { page } = visit;
  withPictures(visit);
  await standin.hold({ path: APIFY });
  await start(visit);
  await state(page, "crawl_youtube_videos", "running");
  await page.reload();
  await side(visit, "对话");
  await state(page, "crawl_youtube_videos", "running");
  const other = await visit.tab(page.url());
  await side(visit, "对话", other);
  await state(other, "crawl_youtube_videos", "running");
  await visit.look("rejoined");
  await standin.release();
  for (const tab of [page, other]) {
    await state(tab, "generate_handbook_html", "done");
    await side(visit, "对话", tab);
    await completed(tab);
  }
  const shown = (tab: Page) => tab.getByRole("log").innerText();
  await eventually(async () => assert.equal(await shown(page), await shown(other)));
  // Nothing is shown twice.
  await comesTo(page.locator(".w-tool"), TOOLS.length);
  await thanks(visit, other);
  await standin.forget();
}

/** What one tab says, the other one shows. */
async function thanks(visit: Visit, other: Page): Promise<void> {
  await visit.page.getByRole("textbox", { name: "消息" }).fill("谢谢");
  await visit.page.keyboard.press("Enter");
  const last = (tab: Page) => tab.getByRole("article", { name: "助手" }).nth(1);
  await last(visit.page).waitFor();
  await last(other).waitFor();
  await eventually(async () =>
    assert.equal(await last(visit.page).innerText(), await last(other).innerText()),
  );
  assert.equal(sentTo(visit, "POST", "/api/chat").length, 2);
}

/**
 * The edge between both sides is dragged, or moved by keyboard, on a desktop: a telephone shows one
 * side at a time.
 */
async function panel(visit: Visit): Promise<void> {
  const { page } = visit;
  await made(visit);
  const handle = page.getByRole("separator", { name: "调整对话面板宽度" });
  const width = async () => {
    const { width } = await boxOf(page.getByRole("region", { name: "对话", exact: true }));
    return [width, await handle.getAttribute("aria-valuenow")];
  };
  const becomes = (wanted: number) =>
    eventually(async () => assert.deepEqual(await width(), [wanted, String(wanted)]));
  await becomes(420);
  const moves: [by: number, wanted: number][] = [
    [-60, 480],
    [-500, 600],
    [900, 300],
    [-100, 400],
  ];
  for (const [by, wanted] of moves) {
    const box = await boxOf(handle);
    const from = box.x + box.width / 2;
    // The pointer is at the middle of the handle, whose edge is that of the panel.
    await page.mouse.move(from, 400);
    await page.mouse.down();
    await page.mouse.move(from + box.width / 2 + by, 400, { steps: 4 });
    await page.mouse.up();
    await becomes(wanted);
  }
  await handle.focus();
  await page.keyboard.press("ArrowLeft");
  await becomes(416);
  await page.keyboard.press("End");
  await becomes(600);
  await visit.look("wide");
  await page.reload();
  await completed(page);
  await becomes(600);
}

/** The link is copied, or shown if that fails. */
async function shared(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByText("链接已复制").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
  await visit.look("shared");
  await page.evaluate(() => {
    navigator.clipboard.writeText = () => Promise.reject(new Error("denied"));
  });
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByText(`复制失败，请手动复制：${page.url()}`).waitFor();
}

const HOSTILE = "<script>window.ran=1</script><img src=x onerror=window.ran=2>";

/** What anybody writes is text. */
async function hostile(visit: Visit): Promise<void> {
  const { page } = visit;
  const said = [
    "# 标题",
    HOSTILE,
    "[bad](javascript:window.ran=3) [good](https://example.com)",
    "![far](https://example.com/x.png)",
    "| a | b |\n|---|---|\n| 1 | **2** |",
  ].join("\n\n");
  const fault = { kind: "script", contents: [said, said] } as const;
  await standin.fault({ path: CHAT_MODEL, fault });
  await page.getByLabel("旅行要求（可选）").fill(`${HOSTILE} **bold**`);
  await page.getByRole("button", { name: "开始生成" }).click();
  await page.waitForURL(/\/session\/[^?]+$/);
  await side(visit, "对话");
  const answer = page.getByRole("article", { name: "助手" }).first();
  await answer.getByRole("cell", { name: "2" }).waitFor();
  assert.equal(await part(page, "first").innerText(), `${HOSTILE} **bold**`);
  assert.match(await answer.innerText(), /<script>window.ran=1<\/script>/);
  const links = await answer
    .getByRole("link")
    .evaluateAll((all: HTMLAnchorElement[]) =>
      all.map(({ href, target, rel }) => [href, target, rel]),
    );
  const safe = (href: string) => [href, "_blank", "noopener noreferrer"];
  assert.deepEqual(links, [safe("https://example.com/"), safe("https://example.com/x.png")]);
  assert.equal(await answer.locator("img, script, [onerror]").count(), 0);
  // A page that still works on something takes no message.
  await idle(page);
  await page.getByRole("textbox", { name: "消息" }).fill(`${HOSTILE} _two_`);
  await page.keyboard.press("Enter");
  const mine = page.getByRole("article", { name: "你" });
  assert.equal(await mine.innerText(), `${HOSTILE} _two_`);
  await page.getByRole("article", { name: "助手" }).nth(1).waitFor();
  await idle(page);
  await standin.forget();
  await visit.look("said");
  await hostileBlocks(visit);
  assert.equal(await page.evaluate(() => window.ran), undefined);
}

async function hostileBlocks(visit: Visit): Promise<void> {
  const { page } = visit;
  const block = {
    block_id: "b",
    type: "other",
    title: HOSTILE,
    description: HOSTILE,
    location: null,
    smart_tags: [HOSTILE],
  };
  const path = page.url().replace("/session/", "/api/sessions/");
  await page.request.patch(`${path}/state`, { data: { blocks: [block] } });
  await page.request.patch(path, { data: { title: HOSTILE } });
  await page.reload();
  await page.getByRole("heading", { name: HOSTILE }).waitFor();
  await side(visit, "手册");
  await radio(page, "Blocks").check();
  assert.equal(await field(page, 1, "标题").inputValue(), HOSTILE);
  await visit.look("blocks");
}

const banner = (page: Page) => page.getByText("连接已断开，正在重连…");

/** An edit and a message of a page without a connection are not stored. */
async function editOffline(visit: Visit): Promise<void> {
  const { page } = visit;
  await side(visit, "手册");
  await radio(page, "Blocks").check();
  await field(page, 1, "标题").fill("While away");
  await page.getByText("保存失败").waitFor();
  await side(visit, "对话");
  await page.getByRole("textbox", { name: "消息" }).fill("谢谢");
  await page.keyboard.press("Enter");
  await page.getByText("消息未发送").waitFor();
  await banner(page).waitFor();
}

/** The edit and the message are stored once the connection is back. */
async function recover({ page }: Visit): Promise<void> {
  await banner(page).waitFor({ state: "detached" });
  await page.getByText("消息未发送").waitFor();
  await page.getByRole("button", { name: "重试" }).last().click();
  await page.getByRole("article", { name: "助手" }).nth(1).waitFor();
  await eventually(async () => {
    const { state, messages } = await session(page);
    assert.equal(state.blocks[0].title, "While away");
    assert.equal(messages.length, 4);
  });
}

/** The server is away: the page says so, keeps what was typed, and continues when it is back. */
async function away(visit: Visit): Promise<void> {
  await made(visit);
  await visit.away();
  await banner(visit.page).waitFor();
  await editOffline(visit);
  await visit.look("away");
  await visit.back();
  await recover(visit);
  assert.equal(sentTo(visit, "POST", "/api/chat").length, 3, "one that was sent in vain");
}

/** The server is killed in the middle of a run and at rest, and started again. */
async function outlives(visit: Visit): Promise<void> {
  const { page } = visit;
  // A server that starts refuses what is asked of it.
  visit.expect(/net::ERR|Failed to fetch|status of 503/);
  withPictures(visit);
  const isHeld = await standin.hold({ path: APIFY });
  await start(visit);
  await state(page, "crawl_youtube_videos", "running");
  await isHeld();
  await order("kill");
  await banner(page).waitFor();
  await visit.look("killed");
  await order("start");
  await banner(page).waitFor({ state: "detached" });
  // The run continues in the new process, and the page shows it to its end.
  await completed(page);
  await allDone(page);
  await idle(page);
  assert.equal(sentTo(visit, "POST", "/api/chat").length, 1, "nothing is sent again");
  await order("kill");
  await editOffline(visit);
  await order("start");
  await recover(visit);
  await standin.forget();
}

/** A run fails: what the services say is shown, and it can go on. */
async function fails(visit: Visit): Promise<void> {
  const { page } = visit;
  const fault = { kind: "status", status: 402 } as const;
  await standin.fault({ path: APIFY, times: 1, fault });
  await start(visit);
  await state(page, "crawl_youtube_videos", "failed");
  assert.ok(await card(page, "crawl_youtube_videos").locator(".w-tool-error").innerText());
  await status(page, "ERROR").waitFor();
  assert.match(await part(page, "summary").innerText(), /抓取视频信息/);
  await visit.look("failed");
  await standin.forget();
}

const scenarios = {
  guide: both(guide),
  initial: onPhone(initial),
  edits: onPhone(edits),
  stop: onPhone(stop),
  reload: onPhone(reload),
  panel,
  hostile: onPhone(hostile),
  away: onPhone(away),
  outlives: onPhone(outlives),
  fails: onPhone(fails),
};

// Pictures of all pages are in one folder, under the names of their scenarios.
const named = Object.entries(scenarios).map(([name, act]) => [`travel-${name}`, act] as const);
await run(Object.fromEntries(named), URL_OF_PAGE);
