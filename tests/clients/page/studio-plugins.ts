// An operator who drops a broken component on the studio and then some that work, sees what they
// need, and calls a tool of the one that is installed; see `visit.ts`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { KEY, logIn, main } from "./studio.ts";
import { parameter, run, textOf, type Visit } from "./visit.ts";

/** The line that grants what the component needs. */
const LINE =
  'http = [{ host = "open.feishu.cn", methods = ["POST"], secrets = ["FEISHU_TENANT_TOKEN"] }]';

/** The table and the line that the host asks for when the tool is called. */
const GRANT = '# wattle.toml\n[grants.bench]\nhttp = [{ host = "example.com", methods = ["GET"] }]';

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

/** Installs a plugin, whose page shows what it is granted, and the schemas of its functions. */
async function install(visit: Visit): Promise<void> {
  const { page } = visit;
  await drop(page, "bench.wasm", readFileSync(parameter(visit.url, "tools")));
  await page.getByRole("button", { name: "Install bench" }).click({ timeout: COMPILE_MS });
  await page.getByRole("heading", { name: "bench", exact: true }).waitFor({ timeout: COMPILE_MS });
  await page.getByRole("region", { name: "Permissions" }).waitFor();
  const nodes = page.getByRole("list", { name: "Nodes" });
  const node = nodes.getByRole("listitem").filter({ hasText: /^call_tools / });
  await node.getByText("call_tools", { exact: true }).click();
  await node.getByRole("group", { name: "Input", exact: true }).waitFor();
  await node.getByRole("group", { name: "Output", exact: true }).waitFor();
  const tool = page.getByRole("list", { name: "Tools" }).getByRole("listitem");
  await tool.filter({ hasText: /^net / }).getByText("net", { exact: true }).click();
  await page.getByRole("group", { name: "Arguments" }).waitFor();
  await visit.look("studio-plugin");
}

/** Calls a tool alone. Its host call is denied, and the page names the line that would allow it. */
async function call(visit: Visit): Promise<void> {
  const { page } = visit;
  await page.getByRole("link", { name: "Try in the playground" }).click();
  await page.waitForURL(/\/plugins\/bench\/play\?tool=net$/);
  const form = page.getByRole("form", { name: "Tool bench/net" });
  await form.getByLabel("url").fill("https://example.com/a");
  await page.getByRole("button", { name: "Call the tool" }).click();
  const lines = page.getByRole("group", { name: "Lines to add" });
  await lines.first().waitFor();
  assert.equal(await textOf(lines.first()), GRANT);
  await visit.look("studio-plugin-tool");
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
  await page.getByRole("button", { name: "Install lark" }).waitFor({ timeout: COMPILE_MS });
  assert.equal(await page.getByRole("alert").count(), 0);
  const preview = page.getByRole("region", { name: "What the plugin is" });
  await preview.getByText("2 tools").waitFor();
  const row = preview.getByRole("row", { name: /^http/ });
  assert.match(await textOf(row), /host open\.feishu\.cn/);
  assert.ok((await textOf(row)).includes(`${LINE}in [grants.lark]`), "the line to add");
  await visit.look("studio-checked-plugin");
  await page.getByRole("button", { name: `Copy ${LINE}` }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `[grants.lark]\n${LINE}\n`);

  await install(visit);
  await call(visit);
  await main(page).getByRole("link", { name: "Plugins" }).click();
  const rows = page.getByRole("table", { name: "Plugins" }).getByRole("row", { name: /^bench/ });
  // One call, which failed, and its denied host call. The list first shows what was read before.
  const used = /^benchno app\d+ nodes, \d+ tools, \d+ endpointsnone111/;
  const listed = rows.filter({ hasText: used });
  await listed.waitFor();
  await visit.look("studio-plugins");
  await visit.lookWide("studio-plugins");
  // The page of the plugin keeps the denied call, with the same line.
  await listed.getByRole("link", { name: "bench" }).click();
  const denied = page.getByRole("region", { name: "Newest denied calls" });
  assert.ok((await textOf(denied)).includes(GRANT));
  const sent = visit.sent.map(([method, path]) => `${method} ${path}`);
  const path = "/api/v1/plugins";
  assert.deepEqual(sent, [
    `POST ${path}/lark/check`,
    `POST ${path}/lark/check`,
    `POST ${path}/bench/check`,
    `PUT ${path}/bench`,
    `POST ${path}/bench/tools/net/call`,
  ]);
}

await run({ installs });
