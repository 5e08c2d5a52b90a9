// Server-sent events: the format, and streams that are cut.
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
  await streamEvents("runs", { method: "GET", onEvent: (event) => events.push(event) });
  return events;
}

test("events do not depend on how the bytes are split", async () => {
  const lines = ": hello\r\nid: 7\nevent: a\ndata: 一\rdata:two\n\n";
  const bytes = new TextEncoder().encode(`${lines}data: {}\r\n\r\nevent: none\n\n`);
  const whole = await eventsIn([bytes]);
  expect(whole).toEqual([
    { event: "a", data: "一\ntwo", id: "7" },
    { event: "message", data: "{}", id: "7" },
  ]);
  expect(await eventsIn([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole);
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

test("a stream that was cut is joined after its last event", async () => {
  const asked: [string, string | null, string | null][] = [];
  const answers = [body("id: 1\ndata: a\n\n"), body("id: 2\ndata: end\n\n")];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const headers = new Headers(init.headers);
    asked.push([init.method ?? "GET", new URL(url).pathname, headers.get("last-event-id")]);
    return new Response(answers.shift());
  });
  const seen: string[] = [];
  await streamEvents("runs", {
    body: {},
    onEvent: ({ data }) => seen.push(data),
    isEnd: ({ data }) => data === "end",
    resume: () => "runs/7",
  });
  expect(seen).toEqual(["a", "end"]);
  expect(asked).toEqual([
    ["POST", "/runs", null],
    ["GET", "/runs/7", "1"],
  ]);
});

test("a request that was cut is not sent twice", async () => {
  const fetched = vi.fn(async () => new Response(body("data: a\n\n", true)));
  vi.stubGlobal("fetch", fetched);
  const options = { body: {}, onEvent: () => {}, isEnd: () => false };
  await expect(streamEvents("runs", options)).rejects.toThrow("连接在回答结束前中断");
  expect(fetched).toHaveBeenCalledTimes(1);
});

test("a refused request is not retried", async () => {
  const fetched = vi.fn(async () => Response.json({ detail: "no such run" }, { status: 404 }));
  vi.stubGlobal("fetch", fetched);
  const options = { method: "GET" as const, onEvent: () => {}, isEnd: () => false };
  await expect(streamEvents("runs", options)).rejects.toMatchObject({ status: 404 });
  expect(fetched).toHaveBeenCalledTimes(1);
});
