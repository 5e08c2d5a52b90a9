// The language of the texts of this package.
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { request } from "../src/api/index.ts";
import { Composer } from "../src/chat/composer.tsx";
import { Shell } from "../src/shell/shell.tsx";
import { DataTable } from "../src/table/table.tsx";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  document.documentElement.removeAttribute("lang");
});

function show(): void {
  render(
    <Shell title="T">
      <Composer label="C" onSend={() => {}} />
      <DataTable label="D" columns={[]} rows={[]} />
    </Shell>,
  );
}

const ENGLISH = ["Skip to main content", "Send", "No data"];
const CHINESE = ["跳到主要内容", "发送", "没有数据"];

test.each([
  ["", CHINESE],
  ["zh-CN", CHINESE],
  ["zh", CHINESE],
  ["en", ENGLISH],
  ["en-GB", ENGLISH],
  ["de", ENGLISH],
])("a document in the language %j has these texts: %j", (lang, expected) => {
  document.documentElement.lang = lang;
  show();
  for (const text of expected) screen.getByText(text);
  screen.getByRole("button", { name: expected === ENGLISH ? "Theme: system" : "主题：跟随系统" });
});

test("a page that changes its language shows its texts in the new one", async () => {
  document.documentElement.lang = "zh-CN";
  show();
  await act(async () => {
    document.documentElement.lang = "en";
  });
  for (const text of ENGLISH) screen.getByText(text);
  for (const text of CHINESE) expect(screen.queryByText(text)).toBeNull();
});

test("an error has a message in the language of the document", async () => {
  vi.stubGlobal("fetch", async () => new Response("", { status: 500 }));
  await expect(request("x")).rejects.toThrow("服务返回了错误（500）。");
  document.documentElement.lang = "en";
  await expect(request("x")).rejects.toThrow("The service returned an error (500).");
});

test.each([429, 500, 503, 504])("a failed host has a Chinese text (%i)", async (status) => {
  const detail = "the host is shutting down; try again later";
  const body = { type: "urn:wattle:problem:unavailable", title: "temporarily unavailable", detail };
  vi.stubGlobal("fetch", async () => Response.json(body, { status }));
  await expect(request("x")).rejects.toThrow(`服务返回了错误（${status}）。`);
  document.documentElement.lang = "en";
  await expect(request("x")).rejects.toThrow(detail);
});

test.each([
  [409, { type: "urn:wattle:problem:busy", detail: "a run is active" }, "a run is active"],
  [500, { error: "数据库没有响应" }, "数据库没有响应"],
])("refusals and errors of an app keep their text (%i)", async (status, body, text) => {
  vi.stubGlobal("fetch", async () => Response.json(body, { status }));
  await expect(request("x")).rejects.toThrow(text);
});
