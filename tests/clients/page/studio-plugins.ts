// An operator who drops a broken component on the studio and then one that works, and sees what it
// needs; see `visit.ts`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { KEY, logIn, main } from "./studio.ts";
import { parameter, run, textOf, type Visit } from "./visit.ts";

/** The line that grants what the component needs. */
const LINE =
  'http = [{ host = "open.feishu.cn", methods = ["POST"], secrets = ["FEISHU_TENANT_TOKEN"] }]';

/** How long the host may take to compile a component, in milliseconds. */
const COMPILE_MS = 60_000;

/** Drops a file on the page. */
async function drop(page: Page, name: string, content: Buffer): Promise<void> {
  const transfer = await page.evaluateHandle(
    ({ name, base64 }) => {
      const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([bytes], name));
      return transfer;
    },
    { name, base64: content.toString("base64") },
  );
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
}

/** A broken component is refused with the reason. Of one that works, its needs are shown. */
async function installs(visit: Visit): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 40[01]/);
  await logIn(page, KEY);
  await main(page).getByRole("link", { name: "Plugins" }).click();
  await page.getByRole("table", { name: "Plugins" }).getByText("misdeeds").first().waitFor();
  await drop(page, "lark.wasm", Buffer.from("<img src=x onerror=alert(1)>"));
  await page.getByRole("alert").getByText("it is a text file, not WebAssembly").waitFor();
  assert.equal(await page.getByRole("button", { name: "Install lark" }).count(), 0);
  await visit.look("studio-broken-plugin");

  await drop(page, "lark.wasm", readFileSync(parameter(visit.url, "component")));
  const install = page.getByRole("button", { name: "Install lark" });
  await install.waitFor({ timeout: COMPILE_MS });
  assert.equal(await page.getByRole("alert").count(), 0);
  const preview = page.getByRole("region", { name: "What the plugin is" });
  await preview.getByText("2 tools").waitFor();
  const row = preview.getByRole("row", { name: /^http/ });
  assert.match(await textOf(row), /host open\.feishu\.cn/);
  assert.ok((await textOf(row)).includes(`${LINE}in [grants.lark]`), "the line to add");
  await visit.look("studio-checked-plugin");
  await install.click();
  await page.getByRole("heading", { name: "lark", exact: true }).waitFor({ timeout: COMPILE_MS });
  await page.getByRole("list", { name: "Tools" }).getByText("saveExpenseToLark").waitFor();
  await page.getByRole("button", { name: `Copy ${LINE}` }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `[grants.lark]\n${LINE}\n`);
  await visit.look("studio-plugin");

  await main(page).getByRole("link", { name: "Plugins" }).click();
  const listed = page.getByRole("table", { name: "Plugins" }).getByRole("row", { name: /^lark/ });
  assert.match(await textOf(listed), /^larkno app2 tools1 missing/);
  await visit.look("studio-plugins");
  const sent = visit.sent.map(([method, path]) => `${method} ${path}`);
  const path = "/api/v1/plugins/lark";
  assert.deepEqual(sent, [`POST ${path}/check`, `POST ${path}/check`, `PUT ${path}`]);
}

await run({ installs });
