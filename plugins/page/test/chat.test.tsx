// The chat hook, on a server whose responses are those of the test.
import { act, cleanup, renderHook } from "@testing-library/react";
import type { UIMessage } from "ai";
import { afterEach, expect, test, vi } from "vitest";
import { type ChatOptions, type StoredChat, useChat } from "../src/ai/ai.ts";
import { isSame, textOf, withoutLast } from "../src/ai/message.ts";
import { ApiError } from "../src/api/index.ts";
import { reached } from "../src/connection/connection.tsx";
import { connection } from "../src/connection/state.ts";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  // A lost connection is that of the whole page.
  reached();
});

function message(role: UIMessage["role"], text: string): UIMessage {
  return { id: `${role} ${text}`, role, parts: [{ type: "text", text }] };
}

const ASKED = message("user", "早");
const RUNNING: StoredChat = { messages: [ASKED], isRunning: true, hasFailed: false };
const EMPTY: StoredChat = { messages: [], isRunning: false, hasFailed: false };

/** Renders a chat whose conversation is `read` from the test. */
function chat(options: Partial<ChatOptions<StoredChat>>) {
  const all: ChatOptions<StoredChat> = {
    loaded: EMPTY,
    chatOf: (stored) => stored,
    read: async () => undefined,
    transport: { api: "http://a.test/api/chat" },
    channel: "test-chat",
    ...options,
  };
  const { result, unmount } = renderHook(() => useChat(all));
  const texts = () => result.current.messages.map(textOf);
  return { result, unmount, texts };
}

/** Answers requests in this order, and none after that. Returns the methods of the requests. */
function serve(...answers: (() => Response | Promise<Response>)[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (_url: string, init?: RequestInit) => {
    asked.push(init?.method ?? "GET");
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("no connection");
    return answer();
  });
  return asked;
}

/** A response of the format of the AI SDK, which ends if `isWhole`. */
function reply(text: string, isWhole = true): Response {
  const chunks = [
    { type: "start", messageId: "a1" },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: text },
    ...(isWhole ? [{ type: "text-end", id: "t" }, { type: "finish" }] : []),
  ];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const events = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
      controller.enqueue(new TextEncoder().encode(events));
      if (isWhole) controller.close();
    },
  });
  return new Response(body);
}

const nothing = () => new Response(null, { status: 204 });

/** A response that arrives when the test says so. */
function held(response: () => Response) {
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const answer = async () => {
    await arrived;
    return response();
  };
  return { answer, arrive };
}

/** Lets happen what waits for no timer. */
async function turn(): Promise<void> {
  await act(async () => {
    await new Promise((resolve) => setImmediate(resolve));
  });
}

function fakeTimers(): void {
  // React and streams wait by means other than these.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
}

async function pass(ms: number): Promise<void> {
  await act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
}

test("a chat joins an active run, also if the first request finds no stream", async () => {
  fakeTimers();
  const asked = serve(nothing, () => reply("好"));
  const { result, texts } = chat({ loaded: RUNNING, read: async () => RUNNING });
  await pass(0);
  expect([texts(), result.current.isBusy]).toEqual([["早"], false]);
  await pass(300);
  expect([texts(), result.current.isBusy]).toEqual([["早", "好"], false]);
  expect(asked).toEqual(["GET", "GET"]);
});

test("a chat without a stream to join retries in growing pauses until it is closed", async () => {
  fakeTimers();
  vi.stubGlobal("fetch", async () => nothing());
  const read = vi.fn(async () => RUNNING);
  const { unmount } = chat({ loaded: RUNNING, read });
  await pass(0);
  for (const [index, pause] of [300, 600, 1200, 2400, 4800, 5000, 5000].entries()) {
    await pass(pause - 1);
    expect(read).toHaveBeenCalledTimes(index);
    await pass(1);
    expect(read).toHaveBeenCalledTimes(index + 1);
  }
  unmount();
  await pass(60_000);
  expect(read).toHaveBeenCalledTimes(7);
});

test("a run that ended before it was joined is shown as it ended", async () => {
  fakeTimers();
  const asked = serve(nothing);
  const ended = { ...RUNNING, messages: [ASKED, message("assistant", "好")], isRunning: false };
  const { texts } = chat({ loaded: RUNNING, read: async () => ended });
  await pass(0);
  await pass(300);
  expect(texts()).toEqual(["早", "好"]);
  await pass(60_000);
  expect(asked).toEqual(["GET"]);
});

test("a stream that was cut is joined once the server is reachable", async () => {
  fakeTimers();
  const cut = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new TypeError("network error")),
  });
  const asked = serve(
    () => new Response(cut),
    // The page itself, which is asked for until the server is reachable.
    () => new Response(),
    () => reply("好"),
  );
  const { result, texts } = chat({ read: async () => RUNNING });
  act(() => void result.current.send("早"));
  await pass(0);
  expect([connection(), result.current.isBusy]).toEqual(["lost", false]);
  await pass(500);
  expect([connection(), texts(), asked]).toEqual([
    "connected",
    ["早", "好"],
    ["POST", "GET", "GET"],
  ]);
});

test("a sent message is answered, and the other tabs are told", async () => {
  const { answer, arrive } = held(() => reply("好"));
  serve(answer);
  const other = new BroadcastChannel("test-chat");
  const told = new Promise((resolve) => {
    other.onmessage = ({ data }: MessageEvent<string>) => resolve(data);
  });
  const { result, texts } = chat({ topic: () => "t1" });
  act(() => void result.current.send("早"));
  await turn();
  expect([texts(), result.current.isBusy]).toEqual([["早"], true]);
  arrive();
  await turn();
  expect([texts(), result.current.isBusy]).toEqual([["早", "好"], false]);
  expect(await told).toBe("t1");
  other.close();
});

test("a refused message is no part of the conversation, and is kept with the reason", async () => {
  const asked = serve(() => Response.json({ error: "忙" }, { status: 409 }));
  const { result, texts } = chat({});
  let reason: unknown;
  await act(async () => {
    reason = await result.current.send("早").catch((error: unknown) => error);
  });
  expect(reason).toBeInstanceOf(ApiError);
  expect(reason).toMatchObject({ status: 409, message: "忙" });
  expect([texts(), result.current.error]).toEqual([[], undefined]);
  expect(result.current.unsent).toMatchObject({ text: "早", error: reason });
  expect(asked).toEqual(["POST"]);
});

test("an unsent message is kept until the conversation has it", async () => {
  fakeTimers();
  serve();
  let stored = { ...EMPTY, messages: [message("user", "午饭")] };
  const { result, texts } = chat({ loaded: stored, read: async () => stored });
  const look = async () => {
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    await pass(100);
  };
  await act(async () => {
    await result.current.send("早").catch(() => undefined);
  });
  expect(result.current.unsent?.error.kind).toBe("network");
  stored = { ...stored, messages: [...stored.messages, message("user", "晚饭")] };
  await look();
  expect([texts(), result.current.unsent?.text]).toEqual([["午饭", "晚饭"], "早"]);
  stored = { ...stored, messages: [...stored.messages, ASKED] };
  await look();
  expect([texts(), result.current.unsent]).toEqual([["午饭", "晚饭", "早"], undefined]);
});

test("an unsent message is recognized by its id if the server has changed its text", async () => {
  fakeTimers();
  const bodies: string[] = [];
  vi.stubGlobal("fetch", async (_url: string, { body }: RequestInit) => {
    bodies.push(String(body));
    throw new TypeError("no connection");
  });
  let stored = EMPTY;
  const { result, texts } = chat({ loaded: stored, read: async () => stored });
  await act(async () => {
    await result.current.send("早").catch(() => undefined);
  });
  expect(result.current.unsent?.text).toBe("早");
  const [sent] = JSON.parse(bodies[0] ?? "").messages;
  stored = { ...EMPTY, messages: [{ ...message("user", "早上好"), id: sent.id }] };
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  await pass(100);
  expect([texts(), result.current.unsent]).toEqual([["早上好"], undefined]);
});

test("a stop ends the stream and the run, and joins nothing meanwhile", async () => {
  fakeTimers();
  const asked = serve(() => reply("一", false));
  let stored = RUNNING;
  const { result, texts } = chat({ read: async () => stored });
  act(() => void result.current.send("早"));
  await pass(0);
  await pass(100);
  expect([texts(), result.current.isBusy]).toEqual([["早", "一"], true]);
  const cancel = vi.fn(async () => {
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    await vi.advanceTimersByTimeAsync(0);
    stored = { ...EMPTY, messages: [ASKED, message("assistant", "一")] };
  });
  await act(() => result.current.stop(cancel));
  expect([texts(), result.current.isBusy]).toEqual([["早", "一"], false]);
  expect(cancel).toHaveBeenCalledTimes(1);
  expect(asked).toEqual(["POST"]);
});

test("the failure of a run is shown until another run succeeds", async () => {
  const failed = { ...RUNNING, isRunning: false, hasFailed: true };
  serve(() => reply("好"));
  const answered = { ...failed, messages: [ASKED, message("assistant", "好")], hasFailed: false };
  const { result, texts } = chat({ loaded: failed, read: async () => answered });
  expect(result.current.hasFailed).toBe(true);
  await act(() => result.current.regenerate());
  expect([texts(), result.current.hasFailed]).toEqual([["早", "好"], false]);
});

test("a conversation is read after a stream until its run has ended", async () => {
  fakeTimers();
  const { answer, arrive } = held(() => reply("好"));
  serve(answer);
  const ended = { ...EMPTY, messages: [ASKED, message("assistant", "好")] };
  const answers = [RUNNING, RUNNING, ended, RUNNING];
  const onRead = vi.fn();
  const { result } = chat({ read: async () => answers.shift(), onRead });
  act(() => void result.current.send("早"));
  await pass(0);
  expect(onRead).not.toHaveBeenCalled();
  arrive();
  await pass(0);
  expect(onRead).toHaveBeenCalledTimes(1);
  await pass(300);
  expect(onRead).toHaveBeenCalledTimes(2);
  await pass(5_000);
  expect(onRead.mock.calls).toEqual([[RUNNING], [RUNNING], [ended]]);
});

test("the conversation that is read after a stream that was cut is shown", async () => {
  fakeTimers();
  const cut = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new TypeError("network error")),
  });
  const { answer, arrive } = held(() => new Response(cut));
  serve(answer);
  const ended = { ...EMPTY, messages: [ASKED, message("assistant", "好")] };
  const { result, texts } = chat({ read: async () => ended, onRead: vi.fn() });
  act(() => void result.current.send("早"));
  await pass(0);
  arrive();
  await pass(100);
  expect([connection(), texts()]).toEqual(["lost", ["早", "好"]]);
});

test("the last message is removed only if the user wrote it", () => {
  const said = [message("assistant", "好"), message("user", "午饭")];
  expect(withoutLast(said, "午饭")).toEqual(said.slice(0, 1));
  expect(withoutLast(said, "晚饭")).toBe(said);
  expect(withoutLast(said.slice(0, 1), "好")).toHaveLength(1);
});

test("messages are compared without their ids", () => {
  const call = (id: string, state: "input-available" | "output-available") => {
    const part = { type: "tool-save", toolCallId: "c1", state, input: {}, output: {} };
    return { id, role: "assistant", parts: [part] } as UIMessage;
  };
  const one = [call("a", "output-available")];
  expect(isSame(one, [call("b", "output-available")])).toBe(true);
  expect(isSame(one, [call("a", "input-available")])).toBe(false);
  expect(isSame(one, [])).toBe(false);
});
