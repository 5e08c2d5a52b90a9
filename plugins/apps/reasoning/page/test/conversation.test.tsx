// A conversation with a scripted server.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { reached } from "@wattle/page/connection";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useConversation } from "../src/conversation.ts";
import { withSession } from "../src/place.ts";

type Answer = [status: number, body: unknown];

/** The session of the scripted server, and whether it exists. */
let known: { status: string; turns: unknown[]; clarifications: unknown[]; clarification: unknown };
let exists: boolean;
/** The requests that it received, and its responses. */
let posts: [string, unknown][];
let answers: Map<string, () => Answer | Promise<Answer>>;

const good = (data: unknown): Answer => [200, { code: 0, data }];
const turnOf = (text: string, status: string, more = {}) => ({
  turn_id: `t-${text}`,
  turn_no: 1,
  status,
  user_input: text,
  ...more,
});

/** Completes the turn of the session. */
const completes = () => {
  known = { ...known, status: "completed", turns: [turnOf("查", "completed", { result: {} })] };
  return good({});
};

const response = ([status, body]: Answer) => Response.json(body, { status });

function read(path: string): Answer {
  if (!exists) return [404, { code: 4040, message: "会话不存在" }];
  const { status } = known;
  return good(path.endsWith("/trace") ? { status, events: [], next_after: null } : known);
}

beforeEach(() => {
  known = { status: "created", turns: [], clarifications: [], clarification: null };
  exists = true;
  posts = [];
  answers = new Map();
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = new URL(url).pathname.split("/sessions")[1] ?? "";
    if (init.method !== "POST") return response(read(path));
    posts.push([path, JSON.parse(String(init.body))]);
    const answer = answers.get(path);
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return response(await answer());
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  // A lost connection is that of the whole page.
  reached();
});

/** Opens the page at a session, or without one. */
function open(id: string | null) {
  history.replaceState(null, "", withSession(id));
  const client = new QueryClient({ defaultOptions: { queries: { networkMode: "always" } } });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  return renderHook(() => useConversation(), { wrapper }).result;
}

type Opened = ReturnType<typeof open>;

const kinds = ({ current }: Opened) => current.entries.map(({ kind }) => kind);

/** Waits until the conversation consists of such entries. */
const comesTo = (it: Opened, wanted: string[]) =>
  waitFor(() => expect(kinds(it)).toEqual(wanted), { timeout: 3_000 });

/** Sends a message. Resolves with the error if it is refused. */
function send(it: Opened, text: string): Promise<unknown> {
  let sent: Promise<unknown> = Promise.resolve();
  act(() => {
    sent = it.current.send(text).catch((error: unknown) => error);
  });
  return sent;
}

/** A response that is held until `release` is called. */
function held(answer: () => Answer) {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { release: () => release(), answer: () => released.then(answer) };
}

test("S1-69: the first message creates a session and runs it", async () => {
  const it = open(null);
  const run = held(completes);
  answers.set("", () => {
    known = { ...known, turns: [turnOf("查", "created")] };
    return good({ session_id: "s1" });
  });
  answers.set("/s1/run", run.answer);
  const sent = send(it, "查");
  await comesTo(it, ["said"]);
  expect(it.current.isRunning).toBe(true);
  run.release();
  expect(await sent).toBeUndefined();
  await comesTo(it, ["said", "answer"]);
  expect(posts).toEqual([
    ["", { user_input: "查" }],
    ["/s1/run", {}],
  ]);
  expect(location.hash).toBe("#session=s1");
});

test("S1-70: a message answers the pending clarification", async () => {
  const asked = { clarification_id: "c", turn_id: "t-查", question: "?", status: "pending" };
  const turns = [turnOf("查", "waiting_clarification")];
  known = { status: "waiting_clarification", turns, clarification: asked, clarifications: [asked] };
  const it = open("s1");
  await comesTo(it, ["said", "asked"]);
  answers.set("/s1/clarify", () => {
    const answered = { ...asked, status: "answered", answer: { text: "客户" } };
    known = { ...known, status: "created", clarification: null, clarifications: [answered] };
    return good({});
  });
  answers.set("/s1/run", completes);
  expect(await send(it, "客户")).toBeUndefined();
  await comesTo(it, ["said", "asked", "said", "answer"]);
  expect(posts[0]).toEqual(["/s1/clarify", { answer: { type: "clarification", text: "客户" } }]);
});

test("S1-75: a failed turn is shown once", async () => {
  const it = open(null);
  answers.set("", () => good({ session_id: "s1" }));
  answers.set("/s1/run", () => {
    const error = { code: "llm", message: "llm decision failed (task)" };
    known = { ...known, status: "failed", turns: [turnOf("查", "failed", { error })] };
    return [400, { code: 9000, message: error.message, data: null }];
  });
  expect(await send(it, "查")).toBeUndefined();
  await comesTo(it, ["said", "failed"]);
});

test("sending rejects if the message was not stored", async () => {
  const it = open(null);
  expect(await send(it, "查")).toBeInstanceOf(Error);
  await comesTo(it, ["failed"]);
  expect(it.current.entries[0]).toMatchObject({ code: "network" });
});

test("a second message during a run is rejected", async () => {
  const it = open(null);
  const created = held(() => [500, { code: 9999, message: "no" }]);
  answers.set("", created.answer);
  const first = send(it, "查");
  await waitFor(() => expect(it.current.isRunning).toBe(true));
  await expect(it.current.send("查")).rejects.toThrow("under way");
  created.release();
  expect(await first).toBeInstanceOf(Error);
  expect(posts.length).toBe(1);
});

test("a run that ends after another session was opened changes nothing in it", async () => {
  const it = open("s1");
  const run = held(() => [500, { code: 9999, message: "no" }]);
  answers.set("/s1/run", run.answer);
  const sent = send(it, "查");
  await comesTo(it, ["said"]);
  history.replaceState(null, "", withSession("s2"));
  act(() => void dispatchEvent(new Event("popstate")));
  expect(it.current).toMatchObject({ id: "s2", isRunning: false, entries: [] });
  run.release();
  expect(await sent).toBeInstanceOf(Error);
  expect(kinds(it)).toEqual([]);
});

test("a session that does not exist is left, and the next message begins another one", async () => {
  exists = false;
  const it = open("s0");
  await comesTo(it, ["failed"]);
  expect(it.current).toMatchObject({ id: null, entries: [{ message: "会话不存在" }] });
  await waitFor(() => expect(location.hash).toBe(""));
  answers.set("", () => {
    exists = true;
    return good({ session_id: "s1" });
  });
  answers.set("/s1/run", completes);
  expect(await send(it, "查")).toBeUndefined();
  await comesTo(it, ["said", "answer"]);
});
