// Requests: URLs, bodies and the errors of hosts, apps and proxies.
import { afterEach, expect, test, vi } from "vitest";
import { ApiError, address, request } from "../src/api/index.ts";
import { connection, lost, reached } from "../src/connection/state.ts";
import { inOrder } from "../src/hook/reads.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
  document.head.replaceChildren();
});

function base(href: string): void {
  const element = document.createElement("base");
  element.setAttribute("href", href);
  document.head.append(element);
}

test("a URL is below the base of the document", () => {
  base("/apps/travel/");
  expect(new URL(address("api/x")).pathname).toBe("/apps/travel/api/x");
  expect(new URL(address("/api/x")).pathname).toBe("/apps/travel/api/x");
});

test("a body is sent as JSON", async () => {
  const fetched = vi.fn(async (_url: string, _init: RequestInit) => new Response(""));
  vi.stubGlobal("fetch", fetched);
  expect(await request("x", { body: { a: 1 } })).toBeUndefined();
  const [, init] = fetched.mock.calls[0] ?? [];
  expect([init?.method, init?.body]).toEqual(["POST", '{"a":1}']);
});

test.each([
  [{ title: "Not found", detail: "no thread", code: "not_found" }, "no thread", "not_found"],
  [{ error: "no session" }, "no session", undefined],
  [{ error: { code: "busy", message: "at work" } }, "at work", "busy"],
  [{ code: 40001, message: "empty" }, "empty", "40001"],
  [{}, "服务返回了错误（409）。", undefined],
])("an error has the message and the code of its body: %j", async (body, message, code) => {
  vi.stubGlobal("fetch", async () => Response.json(body, { status: 409 }));
  const error = await request("x").catch((error: unknown) => error);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ kind: "http", status: 409, message, code, body });
});

test("the page checks its server only while it is not reachable", async () => {
  vi.useFakeTimers();
  let isUp = false;
  const fetched = vi.fn(async () => {
    if (isUp) return new Response("{}");
    throw new TypeError("no connection");
  });
  vi.stubGlobal("fetch", fetched);
  await expect(request("x")).rejects.toMatchObject({ kind: "network" });
  expect(connection()).toBe("lost");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(connection()).toBe("lost");
  isUp = true;
  await vi.advanceTimersByTimeAsync(8_000);
  expect(connection()).toBe("connected");
  const count = fetched.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetched.mock.calls.length).toBe(count);
});

test("a server that is starting is not reachable yet", async () => {
  vi.useFakeTimers();
  let answer: () => Response = () => {
    throw new TypeError("no connection");
  };
  vi.stubGlobal("fetch", async () => answer());
  await expect(request("x")).rejects.toMatchObject({ kind: "network" });
  answer = () => new Response("{}", { status: 503 });
  await expect(request("x")).rejects.toMatchObject({ kind: "http", status: 503 });
  expect(connection()).toBe("lost");
  answer = () => new Response("{}");
  await request("x");
  expect(connection()).toBe("connected");
});

test("pauses grow until the server responds to another request than that of the page", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async () => new Response("{}"));
  reached();
  for (const pauseMs of [500, 1_000, 2_000]) {
    lost();
    await vi.advanceTimersByTimeAsync(pauseMs - 1);
    expect(connection()).toBe("lost");
    await vi.advanceTimersByTimeAsync(1);
    expect(connection()).toBe("connected");
  }
  await request("x");
  lost();
  await vi.advanceTimersByTimeAsync(500);
  expect(connection()).toBe("connected");
});

test("pauses are short again after the server was reachable for a pause", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async () => new Response("{}"));
  reached();
  lost();
  await vi.advanceTimersByTimeAsync(500 + 999);
  lost();
  await vi.advanceTimersByTimeAsync(999);
  expect(connection()).toBe("lost");
  await vi.advanceTimersByTimeAsync(1);
  expect(connection()).toBe("connected");
  // No request is sent meanwhile, so none succeeds.
  await vi.advanceTimersByTimeAsync(2_000);
  lost();
  await vi.advanceTimersByTimeAsync(500);
  expect(connection()).toBe("connected");
});

test("an older response that is late is dropped, and a failed one hides no other", async () => {
  const ends: ((answer: string | undefined) => void)[] = [];
  const read = inOrder((_key: string) => new Promise<string | undefined>((end) => ends.push(end)));
  const [first, second, third, fourth] = [read("a"), read("a"), read("a"), read("a")];
  ends[1]?.("second");
  ends[0]?.("first");
  expect(await Promise.all([first, second])).toEqual([undefined, "second"]);
  ends[3]?.(undefined);
  ends[2]?.("third");
  expect(await Promise.all([third, fourth])).toEqual(["third", undefined]);
});
