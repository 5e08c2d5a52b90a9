// Users at a real browser, each on a page with one of the `useStream` hooks:
//
//     node visit.mjs <scenario> <folder of the older packages>
//
// The pages come from a server of their own. Its origin is the first line on standard output; the
// URL of the Agent Server is the first line on standard input. Each further line on standard output
// asks the test for events of the model's stream: `next <hook>` for one, `rest <hook>` for all. Ends
// with an error if a page does not do what the scenario expects of it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { open as openBrowser } from "../page/launch.js";

const [scenario, olderPackages] = process.argv.slice(2);

/**
 * The hooks of the package for React and of the client for JavaScript, newest and older ones, by
 * the names that the test has for them: the path of the page, and whose hook it is.
 */
const HOOKS = {
  react: { path: "/", of: "react" },
  sdk: { path: "/", of: "sdk" },
  "older-react": { path: "/older/", of: "react" },
  "older-sdk": { path: "/older/", of: "sdk" },
};

/** What the model says to a text. */
const ANSWER = "Thank you, I have read your message: ";

/** The model's pieces come when the page asks the test for them, each hook's on their own. */
const STEPWISE = "please say it piece by piece to ";

/** Pieces that are asked for before the rest comes. */
const PIECES = 6;

/** The model's pieces come one by one, a tenth of a second apart. */
const TEXT = "please say it slowly enough that it can be seen";

/** The same, but more than a second apart. */
const LONG = "please take your time, since nobody waits for the end of it";

/** What `agent` has said before it asks, and behind it. */
const ASKED = [["ai", "Hello, world!"], ["ai", ""], ["tool", "result for 'v3'"]];
const ANSWERED = [["ai", "Human said: yes"], ["ai", "from subgraph"]];

/** The script of the page with the packages of a folder, where `cargo xtask clients` bundles it. */
async function scriptOf(folder) {
  return readFile(join(folder, "chat.bundle.js"));
}

/** A server with the pages. */
async function serve() {
  const [newest, older] = await Promise.all([".", olderPackages].map(scriptOf));
  const scripts = { "/chat.js": newest, "/older/chat.js": older };
  const html = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><body>' +
    '<script type="module" src="chat.js"></script>';
  const server = createServer((request, response) => {
    const script = scripts[request.url];
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    response.end(script ?? html);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

async function open(user, graph) {
  const { browser, path, of } = user;
  const page = await browser.newPage();
  const complaints = [];
  Object.assign(user, { page, complaints });
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(`${origin}${path}?${new URLSearchParams({ hook: of, graph, server })}`);
  await page.locator("main").waitFor();
  return { page, complaints };
}

async function say(page, text) {
  await page.getByRole("textbox").fill(text);
  await page.keyboard.press("Enter");
}

/** Kinds and texts of the messages on the page. */
async function lines(page) {
  const read = (items) => items.map((item) => [item.dataset.kind, item.textContent]);
  return page.locator("li").evaluateAll(read);
}

/** Waits until nothing is at work. */
async function settled(page) {
  await page.locator("main[data-working=false]").waitFor();
}

async function until(page, text) {
  await page.locator("li[data-kind=ai]", { hasText: text }).waitFor();
}

/** Texts of the answer that the page has shown, each once, in order. Called in the page. */
function shownTexts() {
  const texts = window.shown.map((all) => all.findLast(([kind]) => kind === "ai")?.[1] ?? "");
  return [...new Set(texts)].filter((text) => text !== "");
}

/** What the page has shown of the answer. */
async function growth(page) {
  return page.evaluate(shownTexts);
}

/** Waits until the page has shown so many texts of the answer. */
async function grownTo(page, count) {
  await page.waitForFunction(`(${shownTexts})().length >= ${count}`);
}

/** The thread as the server has it. */
async function kept(page) {
  const id = new URL(page.url()).hash.slice(1);
  const read = async (path) => (await fetch(`${server}/threads/${id}${path}`)).json();
  return { status: (await read("")).status, runs: await read("/runs") };
}

/** What a user saw when a scenario failed, and the thread as the server has it. */
async function seen({ page, complaints }) {
  const text = await page.locator("main").innerText();
  return JSON.stringify({ text, lines: await lines(page), kept: await kept(page), complaints });
}

const scenarios = {
  /** Words appear as the model says them. */
  async talks(user) {
    const { page, complaints } = await open(user, "talking_agent");
    const text = STEPWISE + user.hook;
    await say(page, text);
    // The first event of the stream has no text.
    console.log(`next ${user.hook}`);
    for (let pieces = 1; pieces <= PIECES; pieces += 1) {
      console.log(`next ${user.hook}`);
      await grownTo(page, pieces);
    }
    console.log(`rest ${user.hook}`);
    await until(page, ANSWER + text);
    await settled(page);
    const grown = await growth(page);
    grown.slice(1).forEach((text, index) => assert.ok(text.startsWith(grown[index]), text));
    assert.deepEqual(await lines(page), [["human", text], ["ai", ANSWER + text]]);
    await say(page, "and again");
    await until(page, `${ANSWER}and again`);
    await settled(page);
    assert.equal((await lines(page)).length, 4);
    return complaints;
  },

  /** A question is shown and answered. */
  async answers(user) {
    const { page, complaints } = await open(user, "agent");
    await say(page, "hello");
    assert.equal(await page.locator(".question").textContent(), "Are we good?");
    await settled(page);
    assert.deepEqual(await lines(page), [["human", "hello"], ...ASKED]);
    await page.getByRole("button", { name: "Yes" }).click();
    await until(page, "from subgraph");
    await settled(page);
    await page.locator(".question").waitFor({ state: "detached" });
    assert.deepEqual(await lines(page), [["human", "hello"], ...ASKED, ...ANSWERED]);
    assert.equal((await kept(page)).status, "idle");
    return complaints;
  },

  /** A question survives that the page is loaded again. */
  async asks_again(user) {
    const { page, complaints } = await open(user, "agent");
    await say(page, "hello");
    await page.locator(".question").waitFor();
    await settled(page);
    await page.reload();
    assert.equal(await page.locator(".question").textContent(), "Are we good?");
    assert.deepEqual(await lines(page), [["human", "hello"], ...ASKED]);
    await page.getByRole("button", { name: "Yes" }).click();
    await until(page, "from subgraph");
    await settled(page);
    assert.deepEqual(await lines(page), [["human", "hello"], ...ASKED, ...ANSWERED]);
    return complaints;
  },

  /** A page that is loaded again in the middle of an answer sees the rest of it. */
  async rejoins(user) {
    const { page, complaints } = await open(user, "talking_agent");
    await say(page, TEXT);
    await until(page, "Thank");
    await page.reload();
    await until(page, ANSWER + TEXT);
    await settled(page);
    assert.deepEqual(await lines(page), [["human", TEXT], ["ai", ANSWER + TEXT]]);
    assert.equal((await kept(page)).runs.length, 1);
    return complaints;
  },

  /** An answer is stopped, and the thread goes on. */
  async stops(user) {
    const { page, complaints } = await open(user, "talking_agent");
    await say(page, LONG);
    await until(page, "Thank");
    await page.getByRole("button", { name: "Stop" }).click();
    await settled(page);
    let { status, runs } = await kept(page);
    while (status === "busy") ({ status, runs } = await kept(page));
    assert.deepEqual([status, runs.map((run) => run.status)], ["interrupted", ["interrupted"]]);
    const stopped = (await lines(page)).findLast(([kind]) => kind === "ai")?.[1] ?? "";
    assert.ok(!stopped.endsWith(LONG), stopped);
    return complaints;
  },
};

const origin = await serve();
console.log(origin);
const [server] = await once(createInterface(process.stdin), "line");
const browser = await openBrowser();
try {
  const users = Object.entries(HOOKS).map(([hook, page]) => ({ browser, hook, ...page }));
  // Side by side, since most of a scenario is waiting for a model.
  const ends = await Promise.allSettled(users.map(scenarios[scenario]));
  for (const [index, end] of ends.entries()) {
    if (end.status === "rejected") {
      const saw = await seen(users[index]).catch(String);
      throw new Error(`the hook ${users[index].hook} saw ${saw}`, { cause: end.reason });
    }
    assert.deepEqual(end.value, [], users[index].hook);
  }
} finally {
  await browser.close();
}
process.exit();
