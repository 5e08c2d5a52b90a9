// A user who reads what a thread did, step by step: states, differences, blobs, the log and its
// export; see `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { closePanel, panel, viewOfRun } from "./studio.ts";
import {
  comesTo,
  downloaded,
  eventually,
  isTitled,
  parameter,
  run,
  textOf,
  type Visit,
} from "./visit.ts";

/** Characters of a digest in the name of a blob. */
const NAME_DIGITS = 12;

const channel = (page: Page, name: string) => page.locator(`[data-channel="${name}"]`);

/** The thread with its checkpoints, its export and the verification of its log. */
async function readThread(visit: Visit): Promise<string[]> {
  const { page } = visit;
  await page.goto(new URL("/studio/threads/steps", visit.url).href);
  const list = page.getByRole("list", { name: "Checkpoints, newest first" });
  await comesTo(list.getByRole("link"), 6);
  await page.getByRole("button", { name: "Verify the log" }).click();
  await page.getByText(/All seals fit|has no seals/).waitFor();
  const [name, content] = await downloaded(page, "Export the thread");
  assert.equal(name, "thread-steps.jsonl");
  for (const line of content.trim().split("\n")) JSON.parse(line);
  assert.match(content, /The green tree\./);
  await visit.look("studio-thread-log");
  const names = await list.getByRole("link").allTextContents();
  return names.map((text) => text.replace("Checkpoint ", ""));
}

/** The steps of the newest run, and what one of them changed. */
async function readSteps(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("list", { name: "Runs, newest first" }).getByRole("link").first().click();
  // The thread shows the statuses of its runs as well.
  await isTitled(page, /^Run /);
  await page.getByText("completed", { exact: true }).waitFor();
  await viewOfRun(page, "State").click();
  const steps = page.getByRole("table", { name: "Checkpoints of the run" });
  await comesTo(steps.getByRole("link"), 3);
  await steps.getByRole("link", { name: /After superstep 3$/ }).click();
  await channel(page, "number").waitFor();
  assert.equal(await channel(page, "document").count(), 0, "only what was written");
  assert.match(await textOf(channel(page, "number")), /changed12$/);
  await closePanel(page);
  await page.waitForFunction(() => /superstep 3$/.test(document.activeElement?.textContent ?? ""));
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await channel(page, "document").waitFor();
  assert.match(await textOf(channel(page, "document")), /nchanged01$/);
  await visit.look("studio-step");
  await panel(page).getByRole("link", { name: "Open the checkpoint" }).click();
  await page.waitForURL(/\/checkpoints\/\d+$/);
}

/** Two checkpoints of different runs. */
async function compare(visit: Visit, other: string): Promise<void> {
  const { page } = visit;
  await page.getByLabel("Compare with checkpoint").fill(other);
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: `Difference to checkpoint ${other}` }).waitFor();
  const document = channel(page, "document");
  await eventually(async () => assert.equal(await textOf(document.locator("del")), "red"));
  assert.equal(await textOf(document.locator("ins")), "green");
  await visit.look("studio-compared");
  const tab = await visit.tab(page.url());
  await channel(tab, "document").waitFor();
  await tab.close();
}

/** An image, a sound, a page, a document and a drawing: only the first two are more than text. */
async function readBlobs(visit: Visit): Promise<void> {
  const { page } = visit;
  const nameOf = (file: string) => parameter(visit.url, file).slice(0, NAME_DIGITS);
  const open = async (file: string) =>
    await page.getByRole("button", { name: `Show blob ${nameOf(file)}` }).click();
  await open("image");
  const image = page.getByRole("img", { name: `Blob ${nameOf("image")}` });
  await image.waitFor();
  assert.equal(await image.evaluate((it: HTMLImageElement) => it.naturalWidth), 1);
  await open("sound");
  const sound = page.getByLabel(`Blob ${nameOf("sound")}`, { exact: true });
  const duration = () => sound.evaluate((it: HTMLAudioElement) => it.duration);
  await eventually(async () => assert.ok((await duration()) > 0));
  await open("page");
  const text = page.getByRole("group", { name: `Blob ${nameOf("page")}` });
  assert.match(await textOf(text), /<script>alert\(3\)<\/script>/);
  await open("drawing");
  await page.getByText("The studio does not show this content (image/svg+xml)").waitFor();
  assert.equal(await page.locator("#root img").count(), 1);
  assert.equal(await page.locator("#root script, #root svg [onload]").count(), 0);
  await visit.look("studio-blobs");
  await open("paper");
  await page.getByText("The studio does not show this content (application/pdf)").waitFor();
  const [paper] = await downloaded(page, `Download blob ${nameOf("paper")}`);
  assert.equal(paper, `blob-${nameOf("paper")}.pdf`);
  const [name, content] = await downloaded(page, `Download blob ${nameOf("drawing")}`);
  assert.equal(name, `blob-${nameOf("drawing")}`);
  assert.match(content, /^<svg /);
}

/** The events of a run, and one of them in full. */
async function readLog(visit: Visit): Promise<void> {
  const { page } = visit;
  await viewOfRun(page, "Log").click();
  const log = page.getByRole("table", { name: "Log of the run" });
  await log.getByRole("link", { name: /run_ended$/ }).waitFor();
  await visit.look("studio-log");
  await page.getByLabel("Type").selectOption("task_finished");
  await comesTo(log.getByRole("link"), 2);
  await log.getByRole("link").last().click();
  const event = panel(page).getByRole("group", { name: "Event", exact: true });
  await event.waitFor();
  assert.match(await textOf(event), /<img src=x onerror=alert\(1\)> \[U\+202E\]gnp/);
  await page.waitForURL(/view=log&type=task_finished&at=\d+$/);
  await visit.look("studio-log-event");
}

/** What a thread did, from its list of checkpoints to an event of its log. */
async function steps(visit: Visit): Promise<void> {
  const { page } = visit;
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  const checkpoints = await readThread(visit);
  await readSteps(visit);
  // The last checkpoint of the run before.
  await compare(visit, checkpoints[3] ?? "");
  await readBlobs(visit);
  await page.locator("dl a[href*='/runs/']").click();
  await isTitled(page, /^Run /);
  await page.getByText("completed", { exact: true }).waitFor();
  await readLog(visit);
  assert.deepEqual(visit.sent, [], "reading changes nothing");
}

await run({ steps });
