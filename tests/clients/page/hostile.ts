// A travel guide at a real browser: `node hostile.js <scenario> <url of the page> <folder for
// pictures>`.
//
// `guide`: the page fits the two widths at which it is shown, and shows the pictures of the host.
// `hostile`: whatever the page was made from, it runs nothing and sends no request, under its
// policy and without it. The browser may reach nothing but this machine.
//
// The query of the address names the stand-in (`?standin=...`), which shows pictures of services.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import type { Browser, Page, ViewportSize } from "playwright-core";
import { open } from "./launch.ts";

const [, , scenario = "", address = "", pictures = ""] = process.argv;
const given = new URL(address);
const services = new URL(given.searchParams.get("standin") ?? "").origin;
given.search = "";
const url = given.href;

/** Where the page is shown: a desktop and a telephone. */
const DESKTOP = { width: 720, height: 900 };
const PHONE = { width: 375, height: 720 };

/** Elements that no page has, whatever they are called for. */
const BAD =
  "script, iframe, frame, object, embed, applet, video, audio, form, input, button, " +
  "textarea, select, base, link, meta[http-equiv], template, noscript, svg, math, portal";

/** What a page does when a user operates it, without following its links. */
const EVENTS = [
  "abort",
  "animationstart",
  "blur",
  "change",
  "click",
  "error",
  "focus",
  "input",
  "load",
  "mouseover",
  "pointerenter",
  "scroll",
  "submit",
  "toggle",
  "wheel",
];

/** Pictures of the host. */
const OWN = "img[src^='/blobs/']";

/** A page with what it has asked for and tried. */
interface Seen {
  page: Page;
  viewport: ViewportSize;
  /** The kind and the URL of each request. */
  asked: [kind: string, url: string][];
  surprises: string[];
}

/** Opens the page, as it is served or without the policy that forbids what it must not try. */
async function visit(browser: Browser, viewport: ViewportSize, isBare: boolean): Promise<Seen> {
  const page = await browser.newPage({ viewport });
  const seen: Seen = { page, viewport, asked: [], surprises: [] };
  page.setDefaultTimeout(20_000);
  page.on("dialog", (dialog) => {
    seen.surprises.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("popup", (popup) => seen.surprises.push(`popup: ${popup.url()}`));
  page.on("pageerror", (error) => seen.surprises.push(`error: ${error}`));
  page.on("frameattached", (frame) => seen.surprises.push(`frame: ${frame.url()}`));
  page.on("websocket", (socket) => seen.surprises.push(`socket: ${socket.url()}`));
  page.on("request", (request) => seen.asked.push([request.resourceType(), request.url()]));
  if (isBare) {
    await page.route(url, async (route) => {
      const answer = await route.fetch();
      const contentType = "text/html; charset=utf-8";
      await route.fulfill({ status: answer.status(), contentType, body: await answer.text() });
    });
  }
  await page.goto(url);
  return seen;
}

/** Everything that could start something is made to. Where scripts are forbidden no promise ends. */
async function provoke(page: Page): Promise<void> {
  await page.evaluate((events) => {
    for (const element of document.querySelectorAll("*")) {
      for (const type of events) element.dispatchEvent(new Event(type, { bubbles: true }));
    }
    scrollTo(0, document.body.scrollHeight);
  }, EVENTS);
  // A picture is taken of the next frame: what waited for one has had its turn.
  await page.screenshot();
}

/** It asked for itself and for pictures, and nothing came of anything else. */
async function isHarmless({ page, asked, surprises }: Seen, name: string): Promise<void> {
  await provoke(page);
  const documents = asked.filter(([type]) => type !== "image");
  assert.deepEqual(documents, [["document", url]], `${name}: asks for more than itself`);
  const own = new URL(url).origin;
  for (const [, address] of asked.filter(([type]) => type === "image")) {
    const { origin, protocol, pathname } = new URL(address);
    const isAllowed =
      origin === own ? pathname.startsWith("/blobs/") : origin === services || protocol !== "http:";
    assert.ok(isAllowed, `${name}: shows ${address}`);
  }
  const found = await page.evaluate((bad) => {
    const elements = [...document.querySelectorAll("*")];
    const handlers = elements.flatMap((element) =>
      [...element.attributes].filter((it) => /^on|srcdoc|srcset/i.test(it.name)),
    );
    const links = [...document.querySelectorAll<HTMLAnchorElement>("[href]")];
    return {
      ran: String(window.ran),
      bad: [...document.querySelectorAll(bad)].map((element) => element.outerHTML),
      handlers: handlers.map((handler) => handler.name),
      schemes: links
        .filter((link) => !/^(https?|mailto|tel):$|^$/.test(link.protocol))
        .map((link) => link.outerHTML),
      openers: links
        .filter((link) => link.target && !link.relList.contains("noopener"))
        .map((link) => link.outerHTML),
      charset: document.characterSet,
      mode: document.compatMode,
    };
  }, BAD);
  const nothing = { ran: "undefined", bad: [], handlers: [], schemes: [], openers: [] };
  assert.deepEqual(found, { ...nothing, charset: "UTF-8", mode: "CSS1Compat" }, name);
  assert.deepEqual(surprises, [], name);
  assert.equal(page.url(), url, `${name}: went elsewhere`);
}

/** Nothing overflows the window, so nothing has to be scrolled sideways. */
async function fits({ page, viewport }: Seen, name: string): Promise<void> {
  const { scrollWidth, wide } = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll("body *")];
    const out = boxes.filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5);
    const wide = out.map((element) => element.outerHTML.slice(0, 200));
    return { scrollWidth: document.documentElement.scrollWidth, wide };
  });
  await page.screenshot({ path: `${pictures}/${scenario}-${name}-${viewport.width}.png` });
  assert.deepEqual([scrollWidth, wide], [viewport.width, []], `${name} is too wide`);
}

/** Pictures are there, in the page's own size. */
async function showsPictures({ page }: Seen, name: string, selector: string): Promise<void> {
  const images = page.locator(selector);
  const count = await images.count();
  assert.ok(count > 0, `${name}: no picture ${selector}`);
  for (let at = 0; at < count; at += 1) {
    // Pictures further down are loaded when they are reached.
    await images.nth(at).scrollIntoViewIfNeeded();
    await images.nth(at).evaluate((image: HTMLImageElement) => image.decode());
    const width = await images.nth(at).evaluate((image: HTMLImageElement) => image.naturalWidth);
    assert.ok(width > 0, name);
  }
}

const scenarios: Record<string, (browser: Browser) => Promise<void>> = {
  async guide(browser) {
    for (const viewport of [DESKTOP, PHONE]) {
      const seen = await visit(browser, viewport, false);
      await showsPictures(seen, "guide", "img");
      await fits(seen, "guide");
      await isHarmless(seen, "guide");
    }
  },
  async hostile(browser) {
    for (const isBare of [false, true]) {
      const name = isBare ? "bare" : "served";
      const seen = await visit(browser, DESKTOP, isBare);
      assert.equal(await seen.page.locator("h1").innerText(), "A walk in Tokyo", name);
      assert.ok(await seen.page.getByText("The last line").isVisible(), name);
      await showsPictures(seen, name, OWN);
      await isHarmless(seen, name);
    }
  },
};

const run = scenarios[scenario];
assert.ok(run, `no scenario ${scenario}; there are ${Object.keys(scenarios).join(", ")}`);
mkdirSync(pictures, { recursive: true });
const browser = await open();
try {
  await run(browser);
} finally {
  await browser.close();
}
