// Parsing of an input through the app's stream.
import { afterEach, expect, it, vi } from "vitest";
import { parse, type Step, withStep } from "../src/add/parse.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const payload = { type: "unknown", rows: [], missingFields: [], warnings: [] };

function streamOf(...events: [string, unknown][]): Response {
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const headers = { "content-type": "text/event-stream" };
  return new Response(text.join(""), { headers });
}

function answers(...events: [string, unknown][]) {
  vi.stubGlobal("fetch", () => Promise.resolve(streamOf(...events)));
}

/** Cuts the stream after its start, and refuses the first reads of the thread. */
function cuts(...refusals: number[]) {
  const fetched = vi.fn(async (url: string) => {
    if (url.endsWith("/stream")) return streamOf(["start", { threadId: "t" }]);
    const status = refusals.shift();
    if (status === undefined) return Response.json({ threadId: "t", reviewPayload: payload });
    return Response.json({ detail: "the host is shutting down" }, { status });
  });
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

/** Lets time pass until a promise is settled. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  void promise.then(settle, settle);
  while (!isSettled) await vi.advanceTimersByTimeAsync(1_000);
  return promise;
}

const watch = () => ({ onThread: vi.fn(), onSteps: vi.fn() });

it("S0-86 reports the progress of nodes and returns the review", async () => {
  answers(
    ["start", { threadId: "t" }],
    ["node_start", { node: "ingest", message: "正在读取输入" }],
    ["node_end", { node: "ingest", message: "已读取输入" }],
    ["review", { threadId: "t", reviewPayload: payload }],
  );
  const seen = watch();
  expect(await parse({ textInput: "买入" }, seen)).toEqual({
    threadId: "t",
    reviewPayload: payload,
  });
  expect(seen.onThread).toHaveBeenCalledWith("t");
  const done = [{ node: "ingest", message: "已读取输入", isDone: true }];
  expect(seen.onSteps).toHaveBeenLastCalledWith(done);
});

it("rejects with the message of a failed run", async () => {
  answers(["start", { threadId: "t" }], ["error", { status: 502, error: "AI 解析失败: x" }]);
  await expect(parse({ textInput: "买入" }, watch())).rejects.toThrow("AI 解析失败: x");
});

it("rejects if the stream ends without a review", async () => {
  answers();
  await expect(parse({ textInput: "买入" }, watch())).rejects.toThrow();
});

it.each([502, 503, 504])("waits after a cut for a host that responds with %i", async (status) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const fetched = cuts(status, status);
  expect(await settled(parse({ textInput: "买入" }, watch()))).toEqual({
    threadId: "t",
    reviewPayload: payload,
  });
  // The stream, the thread, the page itself until the host responds, and the thread again.
  expect(fetched).toHaveBeenCalledTimes(5);
});

it.each([410, 429, 500])("rejects after a cut with status %i", async (status) => {
  const fetched = cuts(status);
  await expect(parse({ textInput: "买入" }, watch())).rejects.toMatchObject({ status });
  expect(fetched).toHaveBeenCalledTimes(2);
});

it("updates the step of a node in place", () => {
  const step = (node: string, isDone: boolean): Step => ({ node, message: node, isDone });
  const steps = [step("a", false), step("b", false)];
  expect(withStep(steps, step("a", true)).map(({ node }) => node)).toEqual(["a", "b"]);
  expect(withStep(steps, step("c", false))).toHaveLength(3);
});
