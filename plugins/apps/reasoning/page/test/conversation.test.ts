// A conversation with a scripted server.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Conversation, entries, isRunning } from "../src/conversation.ts";

type Answer = [status: number, body: unknown];

/** State of the scripted server, the requests that it received, and its responses. */
let known: { status: string; turns: unknown[]; clarifications: unknown[]; clarification: unknown };
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

beforeEach(() => {
  known = { status: "created", turns: [], clarifications: [], clarification: null };
  posts = [];
  answers = new Map();
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = new URL(url).pathname.split("/sessions")[1] ?? "";
    if (init.method === "POST") {
      posts.push([path, JSON.parse(String(init.body))]);
      const answer = answers.get(path);
      if (answer === undefined) throw new TypeError("Failed to fetch");
      const [status, body] = await answer();
      return new Response(JSON.stringify(body), { status });
    }
    const { status } = known;
    const data = path.endsWith("/trace") ? { status, events: [], next_after: null } : known;
    return new Response(JSON.stringify({ code: 0, data }));
  });
});
afterEach(() => vi.unstubAllGlobals());

const kinds = (it: Conversation) => entries(it.state()).map(({ kind }) => kind);

test("S1-69: the first message creates a session and runs it", async () => {
  const it = new Conversation(null);
  answers.set("", () => good({ session_id: "s1" }));
  answers.set("/s1/run", () => {
    known = { ...known, status: "completed", turns: [turnOf("查", "completed", { result: {} })] };
    return good({});
  });
  const sent = it.send("查");
  expect(kinds(it)).toEqual(["said"]);
  expect(isRunning(it.state())).toBe(true);
  await sent;
  expect(posts).toEqual([
    ["", { user_input: "查" }],
    ["/s1/run", {}],
  ]);
  expect(kinds(it)).toEqual(["said", "answer"]);
});

test("S1-70: a message answers the pending clarification", async () => {
  const asked = { clarification_id: "c", turn_id: "t-查", question: "?", status: "pending" };
  const turns = [turnOf("查", "waiting_clarification")];
  known = { status: "waiting_clarification", turns, clarification: asked, clarifications: [asked] };
  const it = new Conversation("s1");
  await it.refresh();
  answers.set("/s1/clarify", () => {
    const answered = { ...asked, status: "answered", answer: { text: "客户" } };
    known = { ...known, status: "created", clarification: null, clarifications: [answered] };
    return good({});
  });
  answers.set("/s1/run", () => {
    known = { ...known, status: "completed", turns: [turnOf("查", "completed", { result: {} })] };
    return good({});
  });
  await it.send("客户");
  expect(posts[0]).toEqual(["/s1/clarify", { answer: { type: "clarification", text: "客户" } }]);
  expect(kinds(it)).toEqual(["said", "asked", "said", "answer"]);
});

test("S1-75: a failed turn is shown once", async () => {
  const it = new Conversation(null);
  answers.set("", () => good({ session_id: "s1" }));
  answers.set("/s1/run", () => {
    const error = { code: "llm", message: "llm decision failed (task)" };
    known = { ...known, status: "failed", turns: [turnOf("查", "failed", { error })] };
    return [400, { code: 9000, message: error.message, data: null }];
  });
  await it.send("查");
  expect(kinds(it)).toEqual(["said", "failed"]);
});

test("sending rejects if the message was not stored", async () => {
  const it = new Conversation(null);
  await expect(it.send("查")).rejects.toThrow();
  expect(kinds(it)).toEqual(["failed"]);
  expect(it.state().failure?.code).toBe("network");
});

test("a second message during a run is rejected", async () => {
  const it = new Conversation(null);
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  answers.set("", async () => {
    await gate;
    return [500, { code: 9999, message: "no" }];
  });
  const first = it.send("查").catch(() => {});
  await expect(it.send("查")).rejects.toThrow("under way");
  go();
  await first;
  expect(posts.length).toBe(1);
});
