// Parsing of an input through the app's stream.
import { afterEach, expect, it, vi } from "vitest";
import { parse, type Step, withStep } from "../src/add/parse.ts";

afterEach(() => vi.unstubAllGlobals());

const payload = { type: "unknown", rows: [], missingFields: [], warnings: [] };

function answers(...events: [string, unknown][]) {
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const headers = { "content-type": "text/event-stream" };
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(text.join(""), { headers })));
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

it("updates the step of a node in place", () => {
  const step = (node: string, isDone: boolean): Step => ({ node, message: node, isDone });
  const steps = [step("a", false), step("b", false)];
  expect(withStep(steps, step("a", true)).map(({ node }) => node)).toEqual(["a", "b"]);
  expect(withStep(steps, step("c", false))).toHaveLength(3);
});
