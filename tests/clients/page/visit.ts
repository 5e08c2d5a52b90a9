// What the browser programs of all pages share: a real Chromium, windows of two sizes in both color
// schemes, and the checks that hold for every page.
//
// A scenario runs once, in the window of a desktop or, with `onPhone`, in that of a telephone. Each
// of its looks at a page is at both sizes. What a user does differently on a telephone runs at each
// size, with `both`. The main path of each app does, so its other scenarios run on a telephone,
// where less fits; those for which a telephone has no use run on a desktop.
//
// A program is started as `node <app>.js <scenario> <url> <folder for pictures>`. It ends with an
// error if the page does not do what the scenario expects, says something on the console, asks
// another origin, scrolls sideways, or has a serious accessibility violation.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type {
  Browser,
  BrowserContext,
  Locator,
  Page,
  Request,
  ViewportSize,
} from "playwright-core";
import { open } from "./launch.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const DESKTOP: ViewportSize = { width: 1280, height: 800 };

const PHONE: ViewportSize = { width: 375, height: 720 };

/** The window of a screen with 4K pixels. */
const SCREEN: ViewportSize = { width: 3840, height: 2160 };

const SIZES = [DESKTOP, PHONE];

const SCHEMES = ["light", "dark"] as const;

const [, PATH = "", NAME = "", GIVEN_URL = "", PICTURES_FOLDER = ""] = process.argv;

/** The program, which begins the names of its pictures. */
const PROGRAM = basename(PATH, ".js");

/** Violations that fail a scenario. */
const SERIOUS = new Set<string | null | undefined>(["serious", "critical"]);

/** The rules of `axe` whose outcome depends on the color scheme. */
const CONTRAST = ["color-contrast"];

/** Whether scenarios take pictures of what they look at, for people. */
const TAKES_PICTURES = process.env.WATTLE_PICTURES !== undefined;

/** How long a page may take to show what a scenario waits for, in milliseconds. */
const PATIENCE_MS = 20_000;

/** Pause between two attempts at what must hold in the end, in milliseconds. */
const PAUSE_MS = 50;

type Act = (visit: Visit) => Promise<void>;

/** What a user does, with the sizes at which it runs and the locale of the browser. */
interface Scenario {
  sizes?: ViewportSize[];
  locale?: string;
  act: Act;
}

/** Returns a scenario that runs at each size. */
export const both = (act: Act): Scenario => ({ sizes: SIZES, act });

/** Returns a scenario that runs on a telephone, which shows one part of the page at a time. */
export const onPhone = (act: Act): Scenario => ({ sizes: [PHONE], act });

/**
 * Returns a scenario on a telephone whose browser is in English. The browser of all others is in
 * Chinese.
 */
export const inEnglish = (act: Act): Scenario => ({ ...onPhone(act), locale: "en-US" });

/** Runs the scenario that the command line names, by default at the URL that it names. */
export async function run(
  scenarios: Record<string, Act | Scenario>,
  url = GIVEN_URL,
): Promise<void> {
  const scenario = scenarios[NAME];
  assert.ok(scenario, `no scenario ${NAME}; there are ${Object.keys(scenarios).join(", ")}`);
  const chosen = typeof scenario === "function" ? { act: scenario } : scenario;
  const { sizes = [DESKTOP], locale = "zh-CN", act }: Scenario = chosen;
  mkdirSync(PICTURES_FOLDER, { recursive: true });
  const browser = await open();
  try {
    for (const viewport of sizes) {
      const looks = sizes.length > 1 ? [viewport] : SIZES;
      const visit = await Visit.open(browser, { url, viewport, looks, locale });
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
 * Does `act` until it does not fail, for a state that no locator can wait for, such as a number of
 * elements or the text in a field. Fails as it does if that state does not come.
 */
export async function eventually(act: () => Promise<void>): Promise<void> {
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

/** Waits until a locator has so many elements. */
export const comesTo = (locator: Locator, count: number): Promise<void> =>
  eventually(async () => assert.equal(await locator.count(), count));

/** Waits until the title of the page matches. A link to another view leads there a moment later. */
export const isTitled = (page: Page, title: RegExp): Promise<void> =>
  eventually(async () => assert.match(await page.title(), title));

/** Returns the text of an element that is there. */
export async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? "";
}

/** Returns the box of an element that can be seen. */
export async function boxOf(locator: Locator) {
  const box = await locator.boundingBox();
  assert.ok(box, `${locator} cannot be seen`);
  return box;
}

/** Clicks a button that starts a download. Returns the name of the file and its content. */
export async function downloaded(
  page: Page,
  button: string,
): Promise<[name: string, content: string]> {
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: button }).click();
  const download = await waiting;
  // The browser is another process, so the file has no path here.
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(Buffer.from(chunk));
  return [download.suggestedFilename(), Buffer.concat(chunks).toString()];
}

/** Returns a parameter that a test has added to the address of a page. */
export function parameter(url: string, name: string): string {
  const value = new URL(url).searchParams.get(name);
  assert.ok(value, `${url} has no parameter \`${name}\``);
  return value;
}

/** Returns the value at a path within a JSON document; `undefined` if there is none. */
export function valueAt(document: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>((value, key) => Object(value)[key], document);
}

/**
 * Notes the most rows of a table's body that exist at once, from now on; returns what reads the
 * number. Rows without `attribute` are room for those that do not exist.
 */
export async function watchRows(table: Locator, attribute: string): Promise<() => Promise<number>> {
  const noted = await table.evaluateHandle((element, attribute) => {
    const body = element.querySelector("tbody");
    if (body === null) throw new Error("the table has no body");
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

/** An event in the trace of a browser. */
interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Duration in microseconds; absent if the event had not ended when the trace did. */
  dur?: number;
  /** Processor time in microseconds. */
  tdur?: number;
  args?: { data?: { message?: string } };
}

/**
 * Watches the tasks of a page's main thread until the returned function is called, which returns
 * the number of long ones. The trace of the browser has the processor time of each task. Unlike
 * the duration, it does not depend on what else keeps the machine busy.
 */
export async function watchLongTasks(page: Page): Promise<() => Promise<number>> {
  const browser = page.context().browser();
  assert.ok(browser, "the page belongs to a browser");
  const mark = "the page whose tasks are watched";
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"],
  });
  await page.evaluate((mark) => console.timeStamp(mark), mark);
  return async () => {
    const trace = await browser.stopTracing();
    const { traceEvents }: { traceEvents: TraceEvent[] } = JSON.parse(trace.toString());
    const thread = traceEvents.find(
      ({ name, args }) => name === "TimeStamp" && args?.data?.message === mark,
    );
    assert.ok(thread, "the trace has the page");
    const tasks = traceEvents.filter(
      ({ name, pid, tid, dur }) =>
        name === "RunTask" && pid === thread.pid && tid === thread.tid && dur !== undefined,
    );
    const untimed = tasks.filter(({ tdur }) => tdur === undefined);
    assert.deepEqual(untimed, [], "the trace has the processor time of each task");
    assert.notEqual(tasks.length, 0, "the trace has tasks");
    return tasks.filter(({ tdur }) => Number(tdur) > LONG_TASK_US).length;
  };
}

/** Notes, in a page, the properties that a transition changes. */
function noteMotion(): void {
  window.moved = new Set();
  addEventListener("transitionrun", ({ propertyName }) => window.moved.add(propertyName), true);
}

/**
 * Waits until the page has drawn a change of its size or color scheme, and what its scripts made of
 * it. Nothing has moved: the user wants no motion, and a color in the middle of a transition would
 * be that of no scheme.
 */
async function settle(page: Page): Promise<void> {
  const moved = await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
    return [...window.moved];
  });
  assert.deepEqual(moved, [], "nothing moves");
}

/** What the test answers to orders. */
let answers: Interface | undefined;

/** Has the test do something, such as end the server, and waits until it is done. */
export async function order(word: string): Promise<void> {
  answers ??= createInterface({ input: process.stdin });
  const lines = answers;
  const done = new Promise((resolve) => lines.once("line", resolve));
  console.log(`order ${word}`);
  await done;
}

/** A request that changes something: method, path, and JSON body or `null`. */
type Sent = [method: string, path: string, body: unknown];

interface VisitOptions {
  url: string;
  viewport: ViewportSize;
  /** The sizes of each look. */
  looks: ViewportSize[];
  locale: string;
}

/** One user with a window of one size. */
export class Visit {
  readonly page: Page;
  readonly url: string;
  readonly viewport: ViewportSize;
  readonly sent: Sent[] = [];
  readonly #context: BrowserContext;
  readonly #looks: ViewportSize[];
  readonly #complaints: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #origins = new Set<string>();
  readonly #allowed = new Set<string>();

  private constructor(context: BrowserContext, page: Page, options: VisitOptions) {
    this.#context = context;
    this.page = page;
    this.url = options.url;
    this.viewport = options.viewport;
    this.#looks = options.looks;
  }

  static async open(browser: Browser, options: VisitOptions): Promise<Visit> {
    const { viewport, locale } = options;
    const context = await browser.newContext({
      viewport,
      locale,
      timezoneId: "Asia/Shanghai",
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await context.addInitScript(noteMotion);
    const visit = new Visit(context, await context.newPage(), options);
    await visit.#goTo(visit.page, visit.url);
    return visit;
  }

  /** Another tab of the same user, at the address of the page or another one. */
  async tab(url = this.url): Promise<Page> {
    const page = await this.#context.newPage();
    await this.#goTo(page, url);
    return page;
  }

  /** Opens a page, and notes what it says and asks. */
  async #goTo(page: Page, url: string): Promise<void> {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => this.#complaints.push(String(error)));
    page.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      this.#complaints.push(`${message.text()} (${message.location().url})`);
    });
    page.on("request", (request) => this.#note(request));
    await page.goto(url);
  }

  #note(request: Request): void {
    if (/^(data|blob):/.test(request.url())) return;
    const { origin, pathname } = new URL(request.url());
    const isFramed = request.frame().parentFrame() !== null;
    if (!(isFramed && this.#allowed.has(origin))) this.#origins.add(origin);
    if (["GET", "HEAD"].includes(request.method())) return;
    let body: unknown = null;
    try {
      body = JSON.parse(request.postData() ?? "null");
    } catch {
      // Not JSON: a file, for example.
    }
    this.sent.push([request.method(), pathname, body]);
  }

  /** Messages on the console that the scenario provokes, such as those of a refused request. */
  expect(pattern: RegExp): void {
    this.#expected.push(pattern);
  }

  /** An origin that what a page frames shows pictures of; the page itself asks no other. */
  allow(origin: string): void {
    this.#allowed.add(origin);
  }

  /** The page is offline until `back()`. */
  async away(): Promise<void> {
    this.expect(/ERR_INTERNET_DISCONNECTED|Failed to fetch|net::ERR/);
    await this.#context.setOffline(true);
  }

  async back(): Promise<void> {
    await this.#context.setOffline(false);
  }

  /** A picture of what the user saw when a scenario failed, unless the page is closed. */
  async photograph(name: string): Promise<void> {
    const path = `${PICTURES_FOLDER}/${PROGRAM}-${NAME}-${name}-${this.viewport.width}.png`;
    await this.page.screenshot({ path }).catch(() => undefined);
  }

  /** Looks at the page at each size, unless the scenario itself runs at each. */
  async look(name: string, page = this.page): Promise<void> {
    for (const size of this.#looks) {
      await page.setViewportSize(size);
      await lookAt(`${name}-${size.width}`, page);
    }
    await page.setViewportSize(this.viewport);
  }

  /** Looks at the width of the page on a large screen, which changes nothing else. */
  async lookWide(name: string): Promise<void> {
    const { page, viewport } = this;
    await page.setViewportSize(SCREEN);
    await settle(page);
    await picture(`${name}-${SCREEN.width}`, page);
    await fits(`${name}-${SCREEN.width}`, page);
    await page.setViewportSize(viewport);
  }

  /** What must hold when a user leaves. */
  async close(): Promise<void> {
    const unexpected = this.#complaints.filter(
      (text) => !this.#expected.some((pattern) => pattern.test(text)),
    );
    assert.deepEqual(unexpected, [], "the console is silent");
    assert.deepEqual([...this.#origins], [new URL(this.url).origin], "one origin only");
    await this.#context.close();
  }
}

/**
 * Looks at the page: its width and what `axe` says, and in the dark color scheme what `axe` says of
 * the contrast, which is all that a scheme changes. With `WATTLE_PICTURES`, takes a picture in both
 * schemes.
 */
async function lookAt(name: string, page: Page): Promise<void> {
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await settle(page);
    await picture(`${name}-${colorScheme}`, page);
    if (colorScheme === "light") await fits(name, page);
    const rules = colorScheme === "light" ? null : CONTRAST;
    await isAccessible(`${name}, ${colorScheme}`, page, rules);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** With `WATTLE_PICTURES`, takes a picture. */
async function picture(name: string, page: Page): Promise<void> {
  if (!TAKES_PICTURES) return;
  const path = `${PICTURES_FOLDER}/${PROGRAM}-${NAME}-${name}.png`;
  await page.screenshot({ path, animations: "disabled" });
}

/** Everything that can be seen ends within the window, or within something that scrolls. */
async function fits(name: string, page: Page): Promise<void> {
  const wide = await page.evaluate(() => {
    const scrolls = (element: Element) => {
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
async function isAccessible(name: string, page: Page, rules: string[] | null): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const violations = await page.evaluate(async (rules) => {
    const only = rules === null ? {} : { runOnly: { type: "rule" as const, values: rules } };
    // Otherwise it describes each element that passes a rule.
    const resultTypes: ["violations"] = ["violations"];
    const found = await window.axe.run(document, { iframes: false, resultTypes, ...only });
    return found.violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      places: nodes.map(({ target, failureSummary }) => `${target}: ${failureSummary}`),
    }));
  }, rules);
  const serious = violations.filter(({ impact }) => SERIOUS.has(impact));
  assert.deepEqual(serious, [], `${name}: ${JSON.stringify(serious, null, 2)}`);
}
