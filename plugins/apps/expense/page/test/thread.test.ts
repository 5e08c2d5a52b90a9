// The URL and the content of a conversation.
import { textOf } from "@wattle/page/ai";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { countBooked, readAddress, withThread } from "../src/thread.ts";

test("the URL names the conversation and suggests a message", () => {
  const there = readAddress("http://a.test/apps/expense/?thread=t1&initial=%20打车20元%20");
  expect(there).toEqual({ thread: "t1", initial: "打车20元" });
  expect(readAddress("http://a.test/")).toEqual({ thread: undefined, initial: "" });
  const named = withThread("http://a.test/x/?initial=y&a=b", "t 2");
  expect(named).toBe("http://a.test/x/?a=b&thread=t+2");
  expect(withThread(named, undefined)).toBe("http://a.test/x/?a=b");
});

function message(id: string, state: "input-available" | "output-available"): UIMessage {
  const call = { type: "tool-saveExpenseToLark", toolCallId: "c1", state, input: {}, output: {} };
  return { id, role: "assistant", parts: [{ type: "text", text: "好" }, call] } as UIMessage;
}

test("bookings are counted once the tool has a result", () => {
  expect(countBooked([message("a", "input-available")])).toBe(0);
  expect(countBooked([message("a", "output-available"), message("b", "output-available")])).toBe(2);
  expect(textOf(message("a", "output-available"))).toBe("好");
});
