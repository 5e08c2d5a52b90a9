// What the browser programs of all pages share: a real Chromium, windows of two sizes in both color
// schemes, and the checks that hold for every page.
//
// A scenario runs once, in the window of a desktop or, with `onPhone`, in that of a telephone. Each of its looks at a
// page is at both sizes. What a user does differently on a telephone runs at each size, with `both`.
//
// A program is started as `node <app>.mjs <scenario> <url> <folder for pictures>`. It ends with an
// error if the page does not do what the scenario expects, says something on the console, asks
// another origin, scrolls sideways, or has a serious accessibility violation.

import assert from "node:assert/strict";
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { open } from "./launch.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const DESKTOP = { width: 1280, height: 800 };

const PHONE = { width: 375, height: 720 };

const SIZES = [DESKTOP, PHONE];

const SCHEMES = ["light", "dark"];

/** The program, which begins the names of its pictures. */
const PROGRAM = basename(process.argv[1], ".mjs");

/** Violations that fail a scenario. */
const SERIOUS = new Set(["serious", "critical"]);

/** The rules of `axe` whose outcome depends on the color scheme. */
const CONTRAST = ["color-contrast"];

/** Whether scenarios take pictures of what they look at, for people. */
const PICTURES = process.env.WATTLE_PICTURES !== undefined;

/** How long a page may take to show what a scenario waits for, in milliseconds. */
const PATIENCE_MS = 20_000;

/** Pause between two attempts at what must hold in the end, in milliseconds. */
const PAUSE_MS = 50;

/** A scenario that runs at each size. */
export const both = (act) => ({ sizes: SIZES, run: act });

/** A scenario that runs in the window of a telephone, which shows one part of the page at a time. */
export const onPhone = (act) => ({ sizes: [PHONE], run: act });

/** A scenario that runs in a browser in English. The browser of all others is in Chinese. */
export const inEnglish = (act) => ({ locale: "en-US", run: act });

/**
 * Runs the scenario that the command line names.
 *
 * A scenario is an asynchronous function of a `Visit`, or such a function with the sizes at which it runs and the
 * locale of the browser.
 */
export async function run(scenarios) {
  const [name, url, pictures] = process.argv.slice(2);
  const scenario = scenarios[name];
  assert.ok(scenario, `no scenario ${name}; there are ${Object.keys(scenarios).join(", ")}`);
  const { sizes = [DESKTOP], locale = "zh-CN", run: act = scenario } = scenario;
  mkdirSync(pictures, { recursive: true });
  const browser = await open();
  try {
    for (const viewport of sizes) {
      const looks = sizes.length > 1 ? [viewport] : SIZES;
      const visit = await Visit.open(browser, { name, url, pictures, viewport, looks, locale });
      try {
        await act(visit);
        await visit.close();
      } catch (error) {
        await visit.photograph("failure");
        throw error;
      }
    }
  } finally {
    await browser.close();
    answers?.close();
  }
}

/**
 * Does `act` until it does not fail, for a state that no locator can wait for, such as a number of elements or the text
 * in a field. Fails as it does if that state does not come.
 */
export async function eventually(act) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      await act();
      return;
    } catch (error) {
      if (Date.now() >= end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** So many elements a locator has in the end. */
export const comesTo = (locator, count) => eventually(async () => assert.equal(await locator.count(), count));

/**
 * Notes the most rows of a table's body that exist at once, from now on; returns what reads the number. Rows without
 * `attribute` are room for those that do not exist.
 */
export async function watchRows(table, attribute) {
  const noted = await table.evaluateHandle((element, attribute) => {
    const body = element.querySelector("tbody");
    const count = () => body.querySelectorAll(`:scope > tr[${attribute}]`).length;
    const noted = { most: count() };
    new MutationObserver(() => {
      noted.most = Math.max(noted.most, count());
    }).observe(body, { childList: true });
    return noted;
  }, attribute);
  return () => noted.evaluate(({ most }) => most);
}

/** Processor time above which a task of a page is long, in microseconds. */
const LONG_TASK_US = 50_000;

/**
 * Watches the tasks of a page's main thread until the returned function is called, which returns
 * the number of long ones. The trace of the browser has the processor time of each task. Unlike
 * the duration, it does not depend on what else keeps the machine busy.
 */
export async function watchLongTasks(page) {
  const browser = page.context().browser();
  const mark = "the page whose tasks are watched";
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"],
  });
  await page.evaluate((mark) => console.timeStamp(mark), mark);
  return async () => {
    const { traceEvents } = JSON.parse(await browser.stopTracing());
    const isMark = ({ name, args }) => name === "TimeStamp" && args.data.message === mark;
    const { pid, tid } = traceEvents.find(isMark);
    const times = traceEvents
      .filter((event) => event.name === "RunTask" && event.pid === pid && event.tid === tid)
      .map(({ tdur }) => tdur);
    assert.ok(times.length > 0 && times.every(Number.isFinite), "the trace has processor times");
    return times.filter((time) => time > LONG_TASK_US).length;
  };
}

/** Notes, in a page, the properties that a transition changes. */
function noteMotion() {
  globalThis.moved = new Set();
  addEventListener("transitionrun", ({ propertyName }) => globalThis.moved.add(propertyName), true);
}

/**
 * Waits until the page has drawn a change of its size or color scheme, and what its scripts made of it. Nothing has
 * moved: the user wants no motion, and a color in the middle of a transition would be that of no scheme.
 */
async function settle(page) {
  const moved = await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
    return [...globalThis.moved];
  });
  assert.deepEqual(moved, [], "nothing moves");
}

/**
 * Has the stand-in that the address names hold the next request to a model. Nothing releases it, since the server is
 * killed meanwhile. Returns what waits for that request.
 */
export async function hang({ url }, model) {
  const standin = new URL(url).searchParams.get("standin");
  const body = JSON.stringify({ model, fault: { kind: "hang" }, times: 1 });
  const response = await fetch(`${standin}/__faults`, { method: "POST", body });
  assert.equal(response.status, 204, await response.text());
  return () => eventually(async () => {
    const requests = await (await fetch(`${standin}/__requests`)).json();
    assert.ok(requests.some(({ fault }) => fault === "hang"), `${model} is asked`);
  });
}

/** What the test answers to orders. */
let answers;

/** Has the test do something, such as end the server, and waits until it is done. */
export async function order(word) {
  answers ??= createInterface({ input: process.stdin });
  const done = new Promise((resolve) => answers.once("line", resolve));
  console.log(`order ${word}`);
  await done;
}

/** One user with a window of one size. */
export class Visit {
  /** Requests that change something: `[method, path, JSON body or null]`. */
  sent = [];
  #complaints = [];
  #expected = [];
  #origins = new Set();
  #allowed = new Set();

  static async open(browser, options) {
    const { viewport, locale } = options;
    const context = await browser.newContext({
      viewport,
      locale,
      timezoneId: "Asia/Shanghai",
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await context.addInitScript(noteMotion);
    const visit = new Visit();
    Object.assign(visit, options, { context });
    visit.page = await visit.tab();
    return visit;
  }

  /** Another tab of the same user, at the address of the page or another one. */
  async tab(url = this.url) {
    const page = await this.context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => this.#complaints.push(String(error)));
    page.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      this.#complaints.push(`${message.text()} (${message.location().url})`);
    });
    page.on("request", (request) => this.#note(request));
    await page.goto(url);
    return page;
  }

  #note(request) {
    if (/^(data|blob):/.test(request.url())) return;
    const { origin, pathname } = new URL(request.url());
    const isFramed = request.frame().parentFrame() !== null;
    if (!(isFramed && this.#allowed.has(origin))) this.#origins.add(origin);
    if (["GET", "HEAD"].includes(request.method())) return;
    let body = null;
    try {
      body = JSON.parse(request.postData() ?? "null");
    } catch {
      // Not JSON: a file, for example.
    }
    this.sent.push([request.method(), pathname, body]);
  }

  /** Messages on the console that the scenario provokes, such as those of a refused request. */
  expect(pattern) {
    this.#expected.push(pattern);
  }

  /** An origin that what a page frames shows pictures of; the page itself asks no other. */
  allow(origin) {
    this.#allowed.add(origin);
  }

  /** The connection is gone until `back()`. */
  async away() {
    this.expect(/ERR_INTERNET_DISCONNECTED|Failed to fetch|net::ERR/);
    await this.context.setOffline(true);
  }

  async back() {
    await this.context.setOffline(false);
  }

  /** A picture of what the user saw when a scenario failed, unless the page is gone. */
  async photograph(name) {
    const path = `${this.pictures}/${PROGRAM}-${this.name}-${name}-${this.viewport.width}.png`;
    await this.page.screenshot({ path }).catch(() => undefined);
  }

  /** Looks at the page at each size, unless the scenario itself runs at each. */
  async look(name, page = this.page) {
    for (const size of this.looks) {
      await page.setViewportSize(size);
      await this.#lookAt(`${name}-${size.width}`, page);
    }
    await page.setViewportSize(this.viewport);
  }

  /**
   * Looks at the page: its width and what `axe` says, and in the dark color scheme what `axe` says of the contrast,
   * which is all that a scheme changes. With `WATTLE_PICTURES`, takes a picture in both schemes.
   */
  async #lookAt(name, page) {
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await settle(page);
      if (PICTURES) {
        const file = `${PROGRAM}-${this.name}-${name}-${colorScheme}.png`;
        await page.screenshot({ path: `${this.pictures}/${file}`, animations: "disabled" });
      }
      if (colorScheme === "light") await this.#fits(name, page);
      const rules = colorScheme === "light" ? null : CONTRAST;
      await this.#isAccessible(`${name}, ${colorScheme}`, page, rules);
    }
    await page.emulateMedia({ colorScheme: "light" });
  }

  /** Everything that can be seen ends within the window, or within something that scrolls. */
  async #fits(name, page) {
    const wide = await page.evaluate(() => {
      const scrolls = (element) => {
        for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
          if (/auto|scroll|hidden|clip/.test(getComputedStyle(at).overflowX)) return true;
        }
        return false;
      };
      const over = [...document.querySelectorAll("body *")].filter((element) => {
        const box = element.getBoundingClientRect();
        if (box.width <= 1 || box.height <= 1 || scrolls(element)) return false;
        return box.right > innerWidth + 0.5 || box.left < -0.5;
      });
      const { scrollWidth } = document.documentElement;
      const names = over.map(({ tagName, id, className }) => `${tagName}#${id}.${className}`);
      return scrollWidth > innerWidth ? [`the document: ${scrollWidth}`, ...names] : names;
    });
    assert.deepEqual(wide, [], `${name} is too wide`);
  }

  /** Whether these rules of `axe` hold, or all of them. */
  async #isAccessible(name, page, rules) {
    if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
    const violations = await page.evaluate(async (rules) => {
      const only = rules === null ? {} : { runOnly: { type: "rule", values: rules } };
      const found = await globalThis.axe.run(document, { iframes: false, ...only });
      return found.violations.map(({ id, impact, nodes }) => ({
        id, impact, places: nodes.map(({ target, failureSummary }) => `${target}: ${failureSummary}`),
      }));
    }, rules);
    const serious = violations.filter(({ impact }) => SERIOUS.has(impact));
    assert.deepEqual(serious, [], `${name}: ${JSON.stringify(serious, null, 2)}`);
  }

  /** What must hold when a user leaves. */
  async close() {
    const unexpected = this.#complaints.filter(
      (text) => !this.#expected.some((pattern) => pattern.test(text)),
    );
    assert.deepEqual(unexpected, [], "the console is silent");
    assert.deepEqual([...this.#origins], [new URL(this.url).origin], "one origin only");
    await this.context.close();
  }
}
