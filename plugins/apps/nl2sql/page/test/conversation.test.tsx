// The open conversation, on a server whose responses are those of the test.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useConversation } from "../src/chat/conversation.ts";
import type { Message, Messages, Progress } from "../src/chat/types.ts";

/** Maximum wait for the next read of a question in progress, which comes by itself. */
const PATIENCE_MS = 20_000;

const TIME = "2025-01-15T10:30:45+08:00";

beforeEach(() => history.replaceState(null, "", "/"));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function user(id: number, content: string): Message {
  return { id, role: "user", content, result: null, created_at: TIME };
}

/** Responds to requests by their path below `api/chat/`. Returns the paths of the requests. */
function serve(respond: (path: string) => Response | Promise<Response>): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    const path = new URL(url).pathname.replace(/^.*[/]api[/]chat[/]/, "");
    asked.push(path);
    return respond(path);
  });
  return asked;
}

function messages(found: Message[], pending: Messages["pending"] = null): Response {
  const data = { messages: found, total: found.length, pending };
  return Response.json({ code: 0, message: "ok", data });
}

/** A response with events, which the test sends. */
function stream() {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(started) {
      controller = started;
    },
  });
  const send = (event: Pick<Progress, "step" | "status" | "message">) =>
    act(async () => {
      const text = `event: ${event.step}_${event.status}\ndata: ${JSON.stringify(event)}\n\n`;
      controller?.enqueue(encoder.encode(text));
    });
  return { response: () => new Response(body), send };
}

function open() {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useConversation(), { wrapper });
  const turns = () => result.current.turns.map(({ question, state }) => [question, state]);
  return { result, turns };
}

test("a question creates a session, and nothing is read while its steps arrive", async () => {
  const { response, send } = stream();
  const asked = serve(response);
  const { result, turns } = open();
  act(() => void result.current.send("有多少订单"));
  await waitFor(() => expect(turns()).toEqual([["有多少订单", "running"]]));
  expect(new URLSearchParams(location.search).get("session")).toBe(result.current.session);
  await send({ step: "task_parse", status: "start", message: "解析任务" });
  await waitFor(() => expect(result.current.turns[0]?.steps).toHaveLength(1));
  expect([asked, result.current.isBusy]).toEqual([["stream"], true]);
  await send({ step: "workflow", status: "error", message: "模型不可用" });
  await waitFor(() => expect(result.current.isBusy).toBe(false));
  expect(result.current.turns[0]).toMatchObject({ state: "failed", error: "模型不可用" });
});

test("a refused question is no part of the conversation", async () => {
  serve(() => Response.json({ code: 409, message: "忙" }, { status: 409 }));
  const { result, turns } = open();
  let reason: unknown;
  await act(async () => {
    reason = await result.current.send("有多少订单").catch((error: unknown) => error);
  });
  expect(reason).toMatchObject({ status: 409 });
  expect([turns(), result.current.session]).toEqual([[], undefined]);
});

test("messages of a session that is no longer open are not shown", async () => {
  history.replaceState(null, "", "/?session=late");
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  serve(async (path) => {
    if (path !== "sessions/late/messages") return messages([user(2, "新的")]);
    await arrived;
    return messages([user(1, "旧的")]);
  });
  const { result, turns } = open();
  expect(result.current.isLoading).toBe(true);
  act(() => result.current.open("next"));
  await waitFor(() => expect(turns()).toEqual([["新的", "failed"]]));
  await act(async () => arrive());
  expect(turns()).toEqual([["新的", "failed"]]);
});

test("a question that another page has asked is read until it has ended", {
  timeout: PATIENCE_MS,
}, async () => {
  history.replaceState(null, "", "/?session=s");
  let pending: Messages["pending"] = { status: "running" };
  serve(() => messages([user(1, "有多少订单")], pending));
  const { result, turns } = open();
  await waitFor(() => expect(turns()).toEqual([["有多少订单", "waiting"]]));
  expect(result.current.isBusy).toBe(true);
  pending = null;
  const ended = () => expect(turns()).toEqual([["有多少订单", "failed"]]);
  await waitFor(ended, { timeout: PATIENCE_MS });
  expect(result.current.isBusy).toBe(false);
});

test("a session that no longer exists is closed", async () => {
  history.replaceState(null, "", "/?session=gone");
  serve(() => Response.json({ code: 404, message: "没有这个会话" }, { status: 404 }));
  const { result } = open();
  await waitFor(() => expect(result.current.session).toBeUndefined());
  expect(location.search).toBe("");
});
