// An author who calls a tool of a plugin alone, grants what it lacks, and talks to a graph; see
// `visit.ts`.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { downloaded, eventually, order, run, textOf, type Visit, valueAt } from "./visit.ts";

/** What the tool calls. The plugin was granted no tool. */
const INPUT = { calls: [{ tool: "echo", arguments: { text: "<b>hi</b>" } }] };

/** The table and the line that the host asks for. */
const GRANT = '# wattle.toml\n[grants.tools]\ntools = ["tools/echo"]';

const result = (page: Page) => page.getByRole("region", { name: "Result", exact: true });

const click = (page: Page, name: string) => page.getByRole("button", { name }).click();

/** Calls a tool with an input that is written as JSON. */
async function call(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByLabel("What is tried").selectOption("tool:tools/nested");
  const form = page.getByRole("form", { name: "Tool tools/nested" });
  await form.waitFor();
  await visit.look("play-form");
  await form.getByRole("button", { name: "Edit as JSON" }).click();
  await form.getByRole("textbox").fill(JSON.stringify(INPUT));
  await click(page, "Call the tool");
}

/** The call is denied, and the page names the lines that would allow it. */
async function isDenied(visit: Visit): Promise<void> {
  const { page } = visit;
  const lines = result(page).getByRole("group", { name: "Lines to add" });
  await lines.waitFor();
  assert.equal(await textOf(lines), GRANT);
  await visit.look("play-denied");
  await result(page).getByRole("button", { name: "Copy" }).click();
  await eventually(async () => {
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), GRANT);
  });
}

/** Once the line is there, the call succeeds. */
async function isGranted(visit: Visit): Promise<void> {
  const { page } = visit;
  await order("grant");
  await click(page, "Call the tool");
  const data = result(page).getByRole("group", { name: "Data" });
  await data.waitFor();
  assert.ok((await textOf(data)).includes("<b>hi</b>"));
  assert.equal(await result(page).getByRole("group", { name: "Lines to add" }).count(), 0);
  await visit.look("play-tool");
}

/** Talks to the graph, whose model calls a tool, and saves the run as a case. */
async function talk(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByLabel("What is tried").selectOption("graph:chat");
  const field = page.getByLabel("Message", { exact: true });
  await field.fill('call echo {"text":"a"}');
  await field.press("Enter");
  await page.getByText("The tools answered:").waitFor();
  await visit.look("play-chat");
  await click(page, "Save as a case…");
  await page.getByLabel("Name", { exact: true }).fill("says-a");
  await visit.look("play-case");
  const [name, content] = await downloaded(page, "Save the case");
  assert.equal(name, "says-a.jsonl");
  const saved: unknown = JSON.parse(content);
  assert.deepEqual(
    [valueAt(saved, "name"), valueAt(saved, "graph"), valueAt(saved, "expect", "/status")],
    ["says-a", "chat", "completed"],
  );
}

/** From the page of the app to a tool, its grant, and a conversation. */
async function tries(visit: Visit): Promise<void> {
  const { page } = visit;
  page.on("dialog", (dialog) => assert.fail(dialog.message()));
  await page.getByRole("link", { name: "Playground" }).click();
  await page.getByRole("heading", { name: "Playground" }).waitFor();
  await call(visit);
  await isDenied(visit);
  await isGranted(visit);
  await talk(visit);
  const path = "/api/v1/apps/desk/tools/tools%2Fnested/call";
  assert.deepEqual(visit.sent.slice(0, 2), [
    ["POST", path, { input: INPUT }],
    ["POST", path, { input: INPUT }],
  ]);
  assert.equal(await page.locator("#root b").count(), 0);
}

await run({ tries });
