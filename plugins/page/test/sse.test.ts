// Server-sent events: the format, streams that are cut or refused, and types of a document.
import { afterEach, expect, test, vi } from "vitest";
import { type ServerEvent, streamEvents, streams } from "../src/sse/sse.ts";

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

interface Step {
  event: "step";
  data: { node: string };
}

interface End {
  event: "end";
  data: { count: number };
}

/** Types in the form of those that are generated. */
interface Run<Path, Content> {
  get?: never;
  post: {
    parameters: { query?: never; path?: Path };
    requestBody: { content: { "application/json": { text: string } } };
    responses: { 200: { content: Content } };
  };
}

interface Paths {
  "/api/runs": Run<never, { "text/event-stream": Step | End }>;
  "/api/runs/wait": Run<never, { "application/json": End }>;
  "/api/runs/{id}": Run<{ id: string }, { "text/event-stream": Step | End }>;
}

const stream = streams<Paths>();

/** Has the server stream a step and the end. Returns the requests: method, path and body. */
function streamsRuns(): unknown[][] {
  const asked: unknown[][] = [];
  const text = 'event: step\ndata: {"node":"a"}\n\nevent: end\ndata: {"count":1}\n\n';
  vi.stubGlobal("fetch", async (url: string, { method, body: sent }: RequestInit) => {
    asked.push([method, new URL(url).pathname, sent]);
    return new Response(body(text));
  });
  return asked;
}

test("events have the data of the document", async () => {
  const asked = streamsRuns();
  const seen: [string[], number[]] = [[], []];
  await stream("/api/runs", {
    body: { text: "x" },
    ends: ["end"],
    onEvent: ({ event, data }) => {
      if (event === "step") seen[0].push(data.node);
      else seen[1].push(data.count);
    },
  });
  expect(seen).toEqual([["a"], [1]]);
  expect(asked).toEqual([["POST", "/api/runs", '{"text":"x"}']]);
});

test("a stream that the document does not describe has no type", async () => {
  const asked = streamsRuns();
  const body = { text: "x" };
  const rest = { ends: ["end"] as const, onEvent: () => {} };
  // @ts-expect-error: the document has no such path.
  await stream("/api/others", { body, ...rest });
  // @ts-expect-error: the response is no stream.
  await stream("/api/runs/wait", { body, ...rest });
  // @ts-expect-error: the path has a parameter.
  await stream("/api/runs/{id}", { body, ...rest });
  // @ts-expect-error: the body is another one.
  await stream("/api/runs", { ...rest, body: { title: "x" } });
  // @ts-expect-error: the stream has no such event.
  await stream("/api/runs", { ...rest, body, ends: ["end", "done"] });
  // @ts-expect-error: no event has such data.
  await stream("/api/runs", { ...rest, body, onEvent: ({ data }) => data.total });
  expect(asked).toHaveLength(6);
});
