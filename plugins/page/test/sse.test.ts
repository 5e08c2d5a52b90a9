// Server-sent events: the format, and streams that are cut or refused.
import { afterEach, expect, test, vi } from "vitest";
import { type ServerEvent, streamEvents } from "../src/sse/sse.ts";

afterEach(() => vi.unstubAllGlobals());

/** Returns the events in a stream that arrives in these chunks. */
async function eventsIn(chunks: Iterable<Uint8Array>): Promise<ServerEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  vi.stubGlobal("fetch", async () => new Response(body));
  const events: ServerEvent[] = [];
  const isEnd = ({ event }: ServerEvent) => event === "end";
  await streamEvents("runs", { body: {}, isEnd, onEvent: (event) => events.push(event) });
  return events;
}

test("events do not depend on how the bytes are split", async () => {
  const lines = ": hello\r\nid: 7\nevent: a\ndata: 一\rdata:two\n\n";
  const rest = "data: {}\r\n\r\nevent: none\n\nevent: end\ndata: 1\n\ndata: late\n\n";
  const bytes = new TextEncoder().encode(lines + rest);
  const whole = await eventsIn([bytes]);
  expect(whole).toEqual([
    { event: "a", data: "一\ntwo" },
    { event: "message", data: "{}" },
    { event: "end", data: "1" },
    { event: "message", data: "late" },
  ]);
  const split = await eventsIn([...bytes].map((byte) => Uint8Array.of(byte)));
  // Nothing is read after the last event.
  expect(split).toEqual(whole.slice(0, 3));
});

/** Returns a body that ends, or is cut, after some text. */
function body(text: string, isCut = false): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      if (isCut) controller.error(new TypeError("cut"));
      else controller.close();
    },
  });
}

test.each([true, false])("a request that was cut is not sent twice (%s)", async (isCut) => {
  const fetched = vi.fn(async () => new Response(body("data: a\n\n", isCut)));
  vi.stubGlobal("fetch", fetched);
  const options = { body: {}, onEvent: () => {}, isEnd: () => false };
  await expect(streamEvents("runs", options)).rejects.toThrow("连接在回答结束前中断");
  expect(fetched).toHaveBeenCalledTimes(1);
});

test("a refused request is not retried", async () => {
  const fetched = vi.fn(async () => Response.json({ detail: "no such run" }, { status: 404 }));
  vi.stubGlobal("fetch", fetched);
  const options = { body: {}, onEvent: () => {}, isEnd: () => false };
  await expect(streamEvents("runs", options)).rejects.toMatchObject({ status: 404 });
  expect(fetched).toHaveBeenCalledTimes(1);
});
