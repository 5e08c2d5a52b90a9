// Conversations: the work of endpoints.

import { describe, expect, test } from "vitest";
import { chat, code, Failure, Request, type Response, runs } from "wattle-plugin";
import type { FakeHost } from "wattle-plugin/testing";
import { asking, HELLO, HI, hostWith, post, refused, thread } from "./conversations.ts";
import { thrown } from "./thrown.ts";

const CHAT = new chat.Chat("notes", { messageChars: 10 });
const TEXTS = chat.ENGLISH;

const ended = (run: runs.RunRef, outcome: runs.Outcome) => {
  return new runs.EndedRun({ run, outcome, state: { messages: [HI, HELLO] } });
};

/**
 * A host with a conversation with a reply, two without, one with an active run, and a thread of another
 * graph. Its runs are cancelled.
 */
const host = () => {
  return hostWith(
    thread("done", "idle", [HI, HELLO]),
    thread("failed", "error", [HI]),
    thread("empty", "idle", null),
    { ...thread("running", "running", [HI, HELLO]), runId: "run-7" },
    thread("foreign", "idle", [HI], "other"),
  ).runEnds((run) => ended(run, { type: "cancelled" }));
};

const handedOff = ({ body }: Response) => {
  if (body.type !== "hand_off") throw new Error(`no stream: ${body.type}`);
  return body.handOff;
};

describe("messages", () => {
  test.each([
    [{ message: " hi\n" }, undefined],
    [{ message: "hi", threadId: "" }, undefined],
    [{ message: "hi", threadId: null }, undefined],
    [{ message: "hi", threadId: "done" }, "done"],
  ])("%j starts a run", (body, threadId) => {
    const it = host();
    expect(it.run(() => CHAT.send(post(body))).runId).toBe("run-1");
    const input = { messages: [{ role: "user", content: "hi" }] };
    expect(it.started()[0]).toMatchObject({ graph: "notes", input, threadId, metadata: undefined });
  });

  test("a retry starts a run without a message", () => {
    const it = host();
    it.run(() => CHAT.send(post({ threadId: "failed", retry: true })));
    expect(it.started()[0]).toMatchObject({ graph: "notes", input: {}, threadId: "failed" });
  });

  test.each([
    ["hi", 400, TEXTS.malformed],
    [[], 400, TEXTS.malformed],
    [{ message: 5 }, 400, TEXTS.malformed],
    [{ message: null }, 400, TEXTS.malformed],
    [{}, 400, TEXTS.empty],
    [{ message: " \n\u0085" }, 400, TEXTS.empty],
    [{ message: "長".repeat(11) }, 413, TEXTS.tooLong],
    [{ threadId: "done", retry: true }, 409, TEXTS.nothingToRetry],
    [{ threadId: "empty", retry: true }, 409, TEXTS.nothingToRetry],
    [{ threadId: "foreign", retry: true }, 404, TEXTS.missing],
    [{ threadId: "nobody", retry: true }, 404, TEXTS.missing],
    [{ threadId: "", retry: true }, 404, TEXTS.missing],
    [{ threadId: null, retry: true }, 404, TEXTS.missing],
  ])("%j starts no run", (body, status, text) => {
    const it = host();
    expect(refused(() => it.run(() => CHAT.send(post(body))))).toEqual([status, text]);
    expect(it.started()).toEqual([]);
  });

  test("characters are counted without surrounding whitespace", () => {
    const longest = post({ message: ` ${"🍜".repeat(10)} ` });
    expect(host().run(() => CHAT.send(longest)).runId).toBe("run-1");
  });

  test.each([
    [code.BUSY, code.BUSY, 409, TEXTS.busy],
    [code.NOT_FOUND, code.NOT_FOUND, 404, TEXTS.missing],
    // The thread belongs to another graph.
    [code.CONFLICT, code.NOT_FOUND, 404, TEXTS.missing],
    [code.INVALID, code.INVALID, 400, TEXTS.threadId],
    [code.LIMIT, code.LIMIT, undefined, "why"],
  ])("a start that fails with %s has a text", (failed, found, status, text) => {
    const it = host().starts(() => {
      throw new Failure(failed, "why");
    });
    const failure = thrown(() => it.run(() => CHAT.send(post({ message: "hi" }))));
    expect([failure.code, failure.status(), failure.message]).toEqual([found, status, text]);
    expect(it.logged()[0]).toMatchObject({ level: "debug", message: "start a run: why" });
  });

  test("new conversations have titles", () => {
    const titled = new chat.Chat("notes", { titleChars: 6 });
    const metadata = (body: unknown) => {
      const it = host();
      it.run(() => titled.send(post(body)));
      return it.started()[0]?.metadata;
    };
    expect(metadata({ message: "hi" })).toEqual({ title: "hi" });
    expect(metadata({ message: " Green tea\r\nand more" })).toEqual({ title: "Green" });
    expect(metadata({ message: "线线\n" })).toEqual({ title: "线线" });
    expect(metadata({ message: "hi", threadId: "of-the-client" })).toEqual({ title: "hi" });
    expect(metadata({ message: "hi", threadId: "done" })).toBeUndefined();
  });

  test("an app has texts of its own", () => {
    const own = new chat.Chat("notes", { texts: { empty: "Say something." } });
    expect(refused(() => own.send(post({})))).toEqual([400, "Say something."]);
    expect(refused(() => own.send(post("hi")))).toEqual([400, TEXTS.malformed]);
  });
});

/**
 * A host with conversations that have a question. `waiting` and `replied` wait for an answer; the last
 * message of `replied` is a reply.
 */
const hostWithQuestions = (outcome: runs.Outcome = { type: "completed" }) => {
  const { interrupts } = asking("", "notes", "interrupted");
  return hostWith(
    { ...thread("replied", "interrupted", [HI, HELLO]), ...(interrupts && { interrupts }) },
    asking("waiting", "notes", "interrupted"),
    asking("foreign", "other", "interrupted"),
    asking("failed", "notes", "error"),
    asking("cancelled", "notes", "idle"),
  ).runEnds((run) => ended(run, outcome));
};

const answered = (it: FakeHost, threadId: string, body: unknown) => {
  return it.run(() => CHAT.answer(threadId, post(body)).toResponse());
};

describe("questions", () => {
  test.each([
    ["waiting", true],
    ["replied", true],
    ["failed", false],
    ["cancelled", false],
  ])("messages and retries wait for answers: %s", (threadId, isWaiting) => {
    for (const body of [{ message: "hi" }, { retry: true }]) {
      const it = hostWithQuestions();
      const send = () => it.run(() => CHAT.send(post({ ...body, threadId })));
      if (isWaiting) expect(refused(send)).toEqual([409, TEXTS.waiting]);
      else send();
      expect(it.started()).toHaveLength(isWaiting ? 0 : 1);
    }
  });

  test("a question of a run that ends meanwhile is not given up", () => {
    for (const body of [{ message: "hi" }, { threadId: "failed", retry: true }]) {
      const it = host().starts((start) => {
        expect(start.extra.reject_if_interrupted).toBe(true);
        throw Failure.conflict("an answer is missing").withDetails({ reason: "interrupted" });
      });
      expect(refused(() => it.run(() => CHAT.send(post(body))))).toEqual([409, TEXTS.waiting]);
    }
  });

  test("pending questions are shown", () => {
    const shown = (id: string) => hostWithQuestions().run(() => CHAT.show(id));
    expect(shown("waiting").questions).toEqual([{ id: "q", payload: { tool: "pay" } }]);
    for (const id of ["failed", "cancelled"]) expect(shown(id)).not.toHaveProperty("questions");
  });

  test("a pending question is answered", () => {
    const it = hostWithQuestions();
    const decision = { decision: "approve" };
    const response = answered(it, "waiting", { id: "q", answer: decision });
    expect([response.status, response.jsonBody().reply]).toEqual([200, "hello"]);
    expect(it.resumed()).toMatchObject([{ threadId: "waiting", answers: [["q", decision]] }]);
  });

  test("an answer may be null", () => {
    const it = hostWithQuestions();
    answered(it, "waiting", { id: "q", answer: null });
    expect(it.resumed()[0]?.answers).toEqual([["q", null]]);
  });

  test.each([
    ["waiting", [], 400, TEXTS.answer],
    ["waiting", { id: "q" }, 400, TEXTS.answer],
    ["waiting", { answer: true }, 400, TEXTS.answer],
    ["waiting", { id: "other", answer: true }, 409, TEXTS.notPending],
    ["waiting", { id: "", answer: true }, 409, TEXTS.notPending],
    ["failed", { id: "q", answer: true }, 409, TEXTS.notPending],
    ["cancelled", { id: "q", answer: true }, 409, TEXTS.notPending],
    ["foreign", { id: "q", answer: true }, 404, TEXTS.missing],
    ["nobody", { id: "q", answer: true }, 404, TEXTS.missing],
  ])("on %s, the answer %j resumes no run", (threadId, body, status, text) => {
    const it = hostWithQuestions();
    expect(refused(() => answered(it, threadId, body))).toEqual([status, text]);
    expect(it.resumed()).toEqual([]);
  });

  test.each([
    [code.INVALID, 400, TEXTS.answer],
    [code.BUSY, 409, TEXTS.busy],
    [code.NOT_FOUND, 404, TEXTS.missing],
    [code.LIMIT, undefined, "why"],
  ])("an answer that fails with %s has a text", (failed, status, text) => {
    const it = hostWithQuestions().resumes(() => {
      throw new Failure(failed, "why");
    });
    const failure = thrown(() => answered(it, "waiting", { id: "q", answer: true }));
    expect([failure.code, failure.status(), failure.message]).toEqual([failed, status, text]);
  });

  test("a failed run has a default text", () => {
    const it = hostWithQuestions({ type: "failed", failure: Failure.timeout("late") });
    const response = answered(it, "waiting", { id: "q", answer: true });
    expect([response.status, response.jsonBody().error]).toEqual([502, TEXTS.failed]);
  });
});

describe("ended runs", () => {
  const steps = [{ type: "model", content: "hello", toolCalls: [] }];
  const payload = { kind: "tool_approval" };
  const responseSchema = { type: "object" };
  const question = new runs.Interrupt("q", "tools", payload, { responseSchema });
  const threadId = "thread-1";

  test.each<[runs.Outcome, number, unknown]>([
    [{ type: "completed" }, 200, { threadId, reply: "hello", steps }],
    [
      { type: "interrupted", interrupts: [question] },
      202,
      { threadId, reply: "hello", questions: [{ id: "q", payload, responseSchema }], steps },
    ],
    [
      { type: "failed", failure: Failure.timeout("late") },
      502,
      { threadId, error: "timeout", steps },
    ],
    [{ type: "cancelled" }, 409, { threadId, error: TEXTS.cancelled, steps }],
    [{ type: "other", value: "lost" }, 409, { threadId, error: TEXTS.cancelled, steps }],
  ])("outcomes have responses (%#)", (outcome, status, body) => {
    const it = host().runEnds((run) => ended(run, outcome));
    const response = it.run(() => {
      const run = CHAT.send(post({ message: "hi" }));
      return CHAT.wait(run).respond((failure) => [502, failure.code]);
    });
    expect([response.status, response.jsonBody()]).toEqual([status, body]);
  });

  test("steps begin after the last message of the user", () => {
    const messages = [
      HI,
      HELLO,
      { role: "user", content: "a taxi, 20" },
      {
        role: "assistant",
        content: "",
        tool_calls: [
          { id: "a", name: "save", arguments: { amount: 20 } },
          { id: "b", name: "fly", extra: { signature: "s" } },
        ],
      },
      {
        role: "tool",
        tool_call_id: "a",
        name: "save",
        content: "{}",
        status: "success",
        structured: { status: "success" },
      },
      {
        role: "tool",
        tool_call_id: "b",
        name: "fly",
        content: [{ text: "no wings" }],
        status: "error",
      },
      { role: "assistant", content: "saved" },
    ];
    const it = host().runEnds((run) => ({
      run,
      outcome: { type: "completed" },
      state: { messages },
    }));
    const response = it.run(() => CHAT.wait({ threadId, runId: "r" }).toResponse());
    const calls = [
      { id: "a", name: "save", arguments: { amount: 20 } },
      { id: "b", name: "fly", arguments: null },
    ];
    expect(response.jsonBody()).toEqual({
      threadId,
      reply: "saved",
      steps: [
        { type: "model", content: "", toolCalls: calls },
        {
          type: "tool",
          callId: "a",
          tool: "save",
          arguments: { amount: 20 },
          status: "success",
          result: { status: "success" },
        },
        {
          type: "tool",
          callId: "b",
          tool: "fly",
          arguments: null,
          status: "error",
          result: "no wings",
        },
        { type: "model", content: "saved", toolCalls: [] },
      ],
    });
  });
});

describe("streams", () => {
  const stream = (it: FakeHost, conversations: chat.Chat, format?: string) => {
    const request = post({ message: "hi" });
    const asked = format === undefined ? request : request.withQuery("format", format);
    return it.run(() => conversations.stream(asked));
  };

  test.each([
    [undefined, "sse"],
    ["sse", "sse"],
    ["ai-sdk", "ai-sdk"],
  ])("the format %s is %s", (format, expected) => {
    const response = stream(host(), CHAT, format);
    expect(response.headers).toEqual([["x-thread-id", "thread-1"]]);
    expect(handedOff(response)).toEqual({
      threadId: "thread-1",
      runId: "run-1",
      format: expected,
      nodes: ["agent"],
      cancelOnDisconnectMs: undefined,
    });
  });

  test("an unknown format starts no run", () => {
    const it = host();
    expect(refused(() => stream(it, CHAT, "morse"))).toEqual([400, TEXTS.format]);
    expect(it.started()).toEqual([]);
  });

  test("a stream has the model calls of the agent", () => {
    const agent = new chat.Agent({ modelNode: "writer" });
    const conversations = new chat.Chat("notes", { agent, cancelOnDisconnectMs: 5_000 });
    const handOff = handedOff(stream(host(), conversations));
    expect(handOff).toMatchObject({ nodes: ["writer"], cancelOnDisconnectMs: 5_000 });
  });

  test.each([
    [undefined, "ai-sdk"],
    ["ai-sdk", "ai-sdk"],
    ["sse", "sse"],
  ])("the active run is joined as %s", (format, expected) => {
    const request = new Request();
    const asked = format === undefined ? request : request.withQuery("format", format);
    const handOff = handedOff(host().run(() => CHAT.join("running", asked)));
    expect(handOff).toMatchObject({ runId: "run-7", format: expected, nodes: ["agent"] });
    expect(handOff.after).toBeUndefined();
  });

  test("without an active run there is no stream", () => {
    expect(host().run(() => CHAT.join("done", new Request())).status).toBe(204);
    const unknown = new Request().withQuery("format", "morse");
    const refusal = refused(() => host().run(() => CHAT.join("running", unknown)));
    expect(refusal).toEqual([400, TEXTS.format]);
  });
});

describe("conversations", () => {
  test.each([
    ["done", "idle", 2],
    ["failed", "error", 1],
    ["running", "running", 1],
  ])("%s is shown without messages of an active run", (threadId, status, count) => {
    const shown = host().run(() => CHAT.show(threadId));
    expect(shown).toMatchObject({ threadId, status });
    expect(shown.messages).toHaveLength(count);
    const other = new chat.Chat("notes", { agent: new chat.Agent({ channel: "other" }) });
    expect(host().run(() => other.show("done")).messages).toEqual([]);
  });

  test("only an active run is cancelled", () => {
    const it = host();
    for (const threadId of ["running", "done"]) {
      expect(it.run(() => CHAT.cancel(threadId)).threadId).toBe(threadId);
    }
    expect(it.cancelled()).toEqual([{ threadId: "running", runId: "run-7" }]);
  });

  const listed = (it: FakeHost, query: Record<string, string> = {}) => {
    const request = new Request({ queryPairs: Object.entries(query) });
    return it.run(() => CHAT.list(request));
  };
  const ids = ({ threads }: chat.ThreadList) => threads.map(({ threadId }) => threadId);

  test("conversations are listed in pages", () => {
    const it = host();
    const all = listed(it);
    expect(ids(all)).toEqual(["done", "empty", "failed", "running"]);
    expect(all.next).toBeNull();
    const entry = { title: null, status: "running", createdMs: 0, updatedMs: 0 };
    expect(all.threads[3]).toEqual({ threadId: "running", ...entry });
    const first = listed(it, { limit: "3" });
    expect(ids(first)).toEqual(["done", "empty", "failed"]);
    expect(ids(listed(it, { limit: "3", after: first.next ?? "" }))).toEqual(["running"]);
    expect(ids(listed(it, { text: "FAIL" }))).toEqual(["failed"]);
    expect(ids(listed(it, { limit: "0" }))).toEqual(["done"]);
    expect(listed(it, { offset: "x" })).toEqual(all);
  });

  test.each(["after", "limit"])("an invalid %s is refused", (name) => {
    expect(refused(() => listed(host(), { [name]: "x" }))).toEqual([400, TEXTS.list]);
  });

  test("conversations are renamed", () => {
    const it = host();
    const longest = "長".repeat(200);
    for (const [title, shown] of [
      [" Tea\n", "Tea"],
      [longest, longest],
    ]) {
      it.run(() => CHAT.rename("done", post({ title })));
      expect(listed(it).threads[0]).toMatchObject({ threadId: "done", title: shown });
    }
    for (const body of [{}, { title: 7 }, { title: " " }, { title: `${longest}長` }]) {
      const rename = () => it.run(() => CHAT.rename("done", post(body)));
      expect(refused(rename)).toEqual([400, TEXTS.title]);
    }
  });

  test("deleted conversations are not listed", () => {
    const it = host();
    for (const id of ["running", "failed"]) it.run(() => CHAT.delete(id));
    expect(ids(listed(it))).toEqual(["done", "empty"]);
    expect(it.cancelled()).toEqual([{ threadId: "running", runId: "run-7" }]);
  });

  test.each(["nobody", "foreign", ""])("the thread `%s` is not found", (id) => {
    for (const work of [
      () => CHAT.rename(id, post({ title: "Tea" })),
      () => CHAT.delete(id),
      () => CHAT.show(id),
      () => CHAT.join(id, new Request()),
      () => CHAT.cancel(id),
    ]) {
      expect(refused(() => host().run(work))).toEqual([404, TEXTS.missing]);
    }
  });
});
