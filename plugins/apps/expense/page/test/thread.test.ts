// The URL and the content of a conversation.
import { textOf } from "@wattle/page/ai";
import type { UIMessage } from "ai";
import { afterEach, expect, test } from "vitest";
import { countBooked, putThreadInUrl, threadInUrl } from "../src/thread.ts";

afterEach(() => history.replaceState(null, "", "/"));

test("the URL names the conversation", () => {
  history.replaceState(null, "", "/?a=b");
  expect(threadInUrl()).toBeUndefined();
  putThreadInUrl("t 2");
  expect([location.search, threadInUrl()]).toEqual(["?a=b&thread=t+2", "t 2"]);
  putThreadInUrl(undefined);
  expect(location.search).toBe("?a=b");
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
