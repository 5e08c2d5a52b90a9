// The saved thread of the dialog, beside dialogs of other tabs, which share one id for new tabs.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AddAssetModal } from "../src/add/add-asset-modal.tsx";

const KEY = "wattle-asset-thread";

const payload = { type: "operation", rows: [], missingFields: [], warnings: [] };

let otherTab: BroadcastChannel;

beforeEach(() => {
  otherTab = new BroadcastChannel("wattle-asset");
});

afterEach(() => {
  cleanup();
  otherTab.close();
  localStorage.clear();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

/** Does what this tab sees when another one removes the id of its thread and posts it. */
function endElsewhere(threadId: string): void {
  const change = { key: KEY, oldValue: threadId, newValue: null };
  dispatchEvent(new StorageEvent("storage", change));
  otherTab.postMessage(threadId);
}

/** Has the service answer that the saved thread is under review. */
function answersReview(): void {
  const thread = { threadId: "own", reviewPayload: payload };
  vi.stubGlobal("fetch", async (url: string) =>
    Response.json(url.endsWith("/threads/own") ? thread : []),
  );
}

/** Has the service answer an input with these events, and all reads with an empty list. */
function answersInput(...events: [string, unknown][]): void {
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const headers = { "content-type": "text/event-stream" };
  vi.stubGlobal("fetch", async (url: string) =>
    url.endsWith("/stream") ? new Response(text.join(""), { headers }) : Response.json([]),
  );
}

/** What the host responds with while it stops. */
const STOPPING = {
  type: "urn:wattle:problem:unavailable",
  detail: "the host is shutting down; try again later",
};

/** Has the service cut the stream of an input after its start, and refuse reads of the thread. */
function cutsInput(status: number, refusal: object): void {
  const text = 'event: start\ndata: {"threadId": "own"}\n\n';
  const headers = { "content-type": "text/event-stream" };
  vi.stubGlobal("fetch", async (url: string) =>
    url.endsWith("/stream") ? new Response(text, { headers }) : Response.json(refusal, { status }),
  );
}

function send(): void {
  fireEvent.keyDown(screen.getByLabelText("描述交易或持仓"), { key: "Enter" });
}

function open(initial = "") {
  const onStored = vi.fn();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <AddAssetModal open initial={initial} onClose={vi.fn()} onStored={onStored} />
    </QueryClientProvider>,
  );
  return onStored;
}

it("keeps its review when another tab ends another thread", async () => {
  localStorage.setItem(KEY, "own");
  answersReview();
  const onStored = open();
  await screen.findByText("确认添加到组合");
  endElsewhere("other");
  expect(onStored).not.toHaveBeenCalled();
  expect(screen.queryByText("确认添加到组合")).not.toBeNull();
  // A channel keeps the order of messages, so the first one is handled once the second one is.
  endElsewhere("own");
  await vi.waitFor(() => expect(localStorage.getItem(KEY)).toBeNull());
  expect(onStored.mock.calls).toEqual([[0]]);
});

it("keeps the saved thread of another tab when its own input is not parsed", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ error: "AI 解析失败: x" }, { status: 502 }));
  open("买入");
  localStorage.setItem(KEY, "other");
  send();
  await screen.findByText("AI 解析失败: x");
  expect(localStorage.getItem(KEY)).toBe("other");
});

it("keeps the saved thread of another tab when its own run fails", async () => {
  answersInput(["start", { threadId: "own" }], ["error", { status: 502, error: "AI 解析失败: x" }]);
  open("买入");
  localStorage.setItem(KEY, "other");
  send();
  await screen.findByText("AI 解析失败: x");
  expect(localStorage.getItem(KEY)).toBe("other");
});

it("forgets its own thread when its run fails", async () => {
  answersInput(["start", { threadId: "own" }], ["error", { status: 502, error: "AI 解析失败: x" }]);
  open("买入");
  send();
  await screen.findByText("AI 解析失败: x");
  expect(localStorage.getItem(KEY)).toBeNull();
});

it.each([
  [410, { error: "没有结果" }, "没有结果", null],
  [500, STOPPING, "服务返回了错误（500）。", "own"],
])("forgets its own thread after a cut if it is gone (%i)", async (status, body, text, saved) => {
  cutsInput(status, body);
  open("买入");
  send();
  await screen.findByText(text);
  expect(localStorage.getItem(KEY)).toBe(saved);
});

it("continues its own thread after another tab has saved its thread", async () => {
  const review = { threadId: "own", reviewPayload: payload };
  answersInput(["start", { threadId: "own" }], ["review", review]);
  open("买入");
  send();
  await screen.findByText("确认添加到组合");
  localStorage.setItem(KEY, "other");
  cleanup();
  answersReview();
  open();
  await screen.findByText("确认添加到组合");
});

it("does not continue the thread of another tab after the end of its own", async () => {
  localStorage.setItem(KEY, "own");
  answersReview();
  open();
  const again = await screen.findByText("重新输入");
  localStorage.setItem(KEY, "other");
  fireEvent.click(again);
  cleanup();
  open();
  expect(screen.queryAllByText("正在恢复上次的结果")).toEqual([]);
});

it.each([429, 500, 503])("keeps a saved thread that cannot be read (%i)", async (status) => {
  localStorage.setItem(KEY, "own");
  vi.stubGlobal("fetch", async () => Response.json(STOPPING, { status }));
  open();
  await screen.findByText(`服务返回了错误（${status}）。`);
  cleanup();
  answersReview();
  open();
  await screen.findByText("确认添加到组合");
});

it.each([404, 410])("forgets a thread that is gone without a message (%i)", async (status) => {
  localStorage.setItem(KEY, "own");
  const error = "上次解析结果已过期，请重新输入";
  vi.stubGlobal("fetch", async () => Response.json({ error }, { status }));
  open();
  await waitFor(() => expect(screen.queryAllByText("正在恢复上次的结果")).toEqual([]));
  expect(localStorage.getItem(KEY)).toBeNull();
  expect(screen.queryByText(error)).toBeNull();
});

it("posts its thread when the user drops the review", async () => {
  localStorage.setItem(KEY, "own");
  const posted = new Promise((resolve) => {
    otherTab.onmessage = ({ data }: MessageEvent<string>) => resolve(data);
  });
  answersReview();
  open();
  fireEvent.click(await screen.findByText("重新输入"));
  expect(localStorage.getItem(KEY)).toBeNull();
  expect(await posted).toBe("own");
});
