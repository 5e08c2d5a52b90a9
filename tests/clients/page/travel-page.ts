// The page of travel guides, as its scenarios see it: its parts, its server, and the stand-in.
//
// The query of the address names the stand-in (`?standin=...`), whose answers a scenario holds back
// and releases, so that it sees the page in the middle of a run. The page never gets that query.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Standin } from "./standin.ts";
import { eventually, type Visit } from "./visit.ts";

const given = new URL(process.argv[3] ?? "");

/** The services that the page's server asks. */
export const standin = new Standin(given.href);
given.search = "";

/** Address of the page. */
export const URL_OF_PAGE = given.href;

export const VIDEO = "https://youtu.be/dQw4w9WgXcQ?si=x";
export const WISHES = "with 2 AI pictures";

/** Where services are asked. */
export const APIFY = "/v2/acts/*";
export const PICTURES = "/v1beta/models/imagen-*";

/** Guides show pictures of other services. */
export function withPictures(visit: Visit): void {
  visit.allow(standin.origin);
}

export const isNarrow = ({ viewport }: Visit): boolean => viewport.width < 900;

/** On a narrow screen one of both sides is shown. */
export async function side(visit: Visit, name: string, page = visit.page): Promise<void> {
  if (isNarrow(visit)) await radio(page, name).check();
}

/** The elements with this name. */
export const part = (page: Page, name: string) => page.locator(`[data-part="${name}"]`);

/** The status of the session above the conversation, if it is this one. */
export const status = (page: Page, wanted: string) =>
  part(page, "summary").locator(`[data-status="${wanted}"]`);

export const radio = (page: Page, name: string) => page.getByRole("radio", { name, exact: true });

export const card = (page: Page, tool: string) => page.locator(`.w-tool[data-tool="${tool}"]`);

export const field = (page: Page, at: number, label: string): Locator =>
  page
    .getByRole("listitem", { name: `内容块 ${at}`, exact: true })
    .getByLabel(label, { exact: true });

/** Reads the session of a page from its server. */
export const session = async (page: Page) =>
  (await page.request.get(page.url().replace("/session/", "/api/sessions/"))).json();

export const sessionId = (page: Page): string =>
  new URL(page.url()).pathname.split("/session/")[1] ?? "";

/** What was sent to an endpoint. */
export const sentTo = ({ sent }: Visit, method: string, end: string) =>
  sent.filter(([by, path]) => by === method && path.endsWith(end));

/** Begins a session by the form. */
export async function start(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByLabel("视频链接").fill(VIDEO);
  await page.getByLabel("旅行要求（可选）").fill(WISHES);
  await page.getByRole("button", { name: "开始生成" }).click();
  await page.waitForURL(/\/session\/[^?]+$/);
  await side(visit, "对话");
}

/** On a narrow screen the card may be on the side that is not shown. */
export const state = (page: Page, tool: string, wanted: string): Promise<void> =>
  card(page, tool)
    .and(page.locator(`[data-state="${wanted}"]`))
    .last()
    .waitFor({ state: "attached" });

export const completed = (page: Page): Promise<void> =>
  status(page, "COMPLETED").waitFor({ state: "attached" });

/** Nothing is made any more, as the page and the server see it: a message or an edit is taken. */
export async function idle(page: Page): Promise<void> {
  await page.locator('.w-messages-box[aria-busy="false"]').waitFor({ state: "attached" });
  await eventually(async () => assert.notEqual((await session(page)).status, "RUNNING"));
}

/** A session with a guide, at the page. */
export async function made(visit: Visit): Promise<void> {
  withPictures(visit);
  await start(visit);
  await state(visit.page, "generate_handbook_html", "done");
  await side(visit, "对话");
  await completed(visit.page);
}
