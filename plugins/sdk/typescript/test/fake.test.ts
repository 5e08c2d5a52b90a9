// The fake host, and the modules on it.

import { describe, expect, test } from "vitest";
import {
  clock,
  emit,
  Failure,
  handler,
  http,
  interrupt,
  type Json,
  llm,
  Message,
  memory,
  Response,
  random,
  runs,
  settings,
  sql,
  ToolOutput,
  tenants,
  tools,
} from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import * as z from "zod";
import { thrown } from "./thrown.ts";

describe("the fake host", () => {
  test("a call without a fake host names the missing method", () => {
    const failure = thrown(() => emit.custom("a", 1));
    expect(failure.code).toBe("unsupported");
    expect(failure.message).toContain("`FakeHost.run`");
  });

  test("a call without a script names the missing method", () => {
    const query = () => sql.database("a").query("SELECT 1");
    expect(thrown(() => new FakeHost().run(query)).message).toContain("`FakeHost.sql`");
  });

  test("fake hosts nest, also when a call throws", () => {
    const [outer, inner] = [new FakeHost(), new FakeHost()];
    outer.run(() => {
      expect(() =>
        inner.run(() => {
          emit.custom("inner", 1);
          throw new Error("stop");
        }),
      ).toThrow("stop");
      emit.custom("outer", 1);
    });
    expect(outer.emitted()).toEqual([["outer", 1]]);
    expect(inner.emitted()).toEqual([["inner", 1]]);
  });

  test("a batch returns outputs and failures in order", () => {
    const host = new FakeHost()
      .tool("echo", (args) => JSON.stringify(args))
      .tool("fail", () => {
        throw Failure.conflict("not now");
      });
    const calls = ["echo", "fail", "none", "echo"].map((name, at) => new tools.Call(name, at));
    const results = host.run(() => tools.callAll(calls));
    const codes = results.map((it) => (it instanceof ToolOutput ? it.textContent() : it.code));
    expect(codes).toEqual(["0", "conflict", "not-found", "3"]);
    expect(host.toolCalls()).toHaveLength(4);
  });

  test("a handler that a test calls has to respond with JSON", () => {
    const host = new FakeHost().setting("name", "shop");
    const name = handler("GET", "/name", {}, () =>
      Response.json(200, { name: settings.get("name") }),
    );
    expect(host.respond(name)).toEqual([200, { name: "shop" }]);
    const gone = handler("GET", "/gone", {}, () => {
      throw Failure.notFound("gone").withStatus(404);
    });
    expect(thrown(() => host.respond(gone)).status()).toBe(404);
    const empty = handler("GET", "/empty", {}, () => Response.empty(204));
    expect(thrown(() => host.respond(empty)).code).toBe("invalid");
  });

  test("all runs of a fake host can have one outcome", () => {
    const failure = Failure.unavailable("down");
    const host = new FakeHost().outcome({ type: "failed", failure });
    const ended = host.run(() => runs.wait(runs.start({ graph: "order" })));
    expect(ended).toMatchObject({ run: { runId: "run-1" }, state: {} });
    expect(thrown(() => ended.completed())).toBe(failure);
  });

  test("an interrupt without an answer fails", () => {
    const host = new FakeHost().answer(1);
    host.run(() => {
      expect(interrupt.ask("a")).toBe(1);
      expect(thrown(() => interrupt.ask("b")).code).toBe("interrupted");
    });
    expect(host.questions()).toHaveLength(2);
  });
});

describe("models", () => {
  test("a request has the messages in order and the extension fields", () => {
    const request = new llm.Request({
      route: "chat",
      system: "be brief",
      messages: [Message.user("a"), Message.assistant("b")],
      user: ["c", { type: "reasoning", text: "d" }],
      tools: [llm.ToolDefinition.of("add", "Adds.", z.object({ a: z.int() }))],
      candidate: 1,
      retries: 0,
      timeoutMs: 5,
      withoutRepair: true,
    });
    expect(request.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "user",
    ]);
    expect(request.text()).toBe("be brief\na\nb\nc");
    expect(request.extra).toEqual({ candidate: 1, retries: 0, timeout_ms: 5, repair: false });
    expect(request.tools[0]?.argumentsSchema).toMatchObject({ required: ["a"] });
  });

  test("a stream has deltas of text and tool calls", () => {
    const { parts } = llm.Completion.ofToolCall("call-1", "add", { a: 1 });
    const completion = new llm.Completion({ parts: [{ type: "text", text: "I will" }, ...parts] });
    const host = new FakeHost().llm(() => completion);
    const stream = host.run(() => llm.stream({ route: "chat", user: "go" }));
    expect([...stream]).toEqual([
      { type: "text", text: "I " },
      { type: "text", text: "will" },
      { type: "tool_call_delta", index: 0, name: "add", arguments: '{"a":1}' },
    ]);
    expect(stream.finish()).toBe(completion);
  });

  test("a completion becomes a message with its id", () => {
    const call = llm.Completion.ofToolCall("c", "add", { a: 1 });
    const completion = new llm.Completion({
      parts: [{ type: "reasoning", text: "hm" }, { type: "text", text: "so" }, ...call.parts],
      extra: {
        id: "m",
        attempts: [{ provider: "p", model: "large", error: { code: "a", message: "b" } }],
      },
    });
    expect(completion.toStored()).toEqual({
      id: "m",
      role: "assistant",
      content: "so",
      reasoning: "hm",
      tool_calls: [{ id: "c", name: "add", arguments: { a: 1 } }],
    });
    expect(completion.toMessage().extra).toEqual({ id: "m" });
    expect(completion.attempts()[0]?.error?.code).toBe("a");
    expect(thrown(() => completion.structuredAs(z.unknown())).message).toContain("`schema`");
  });

  test("stored calls have unique ids and the state of the provider", () => {
    const { parts } = llm.Completion.ofToolCall("c", "add", { a: 1 });
    const state = { type: "provider_state", data: "x" };
    const completion = new llm.Completion({
      parts: [...parts, { type: "other", value: "audio" }, { type: "other", value: state }],
      extra: { call_ids: ["c-2"] },
    });
    expect(completion.toStored()).toMatchObject({
      tool_calls: [{ id: "c-2" }],
      provider_state: state,
    });
  });

  test("reasoning alone is no answer", () => {
    expect(llm.Completion.ofText("hello").isAnswer()).toBe(true);
    expect(llm.Completion.ofToolCall("c", "add", {}).isAnswer()).toBe(true);
    expect(new llm.Completion({ parts: [{ type: "reasoning", text: "hm" }] }).isAnswer()).toBe(
      false,
    );
  });
});

describe("HTTP", () => {
  test("a request has one body, and delays are recorded", () => {
    const host = new FakeHost().http(() => ({ status: 503, text: "busy" }));
    host.run(() => {
      for (const delayMs of [0, 200]) http.post("https://a.example", { json: { a: 1 }, delayMs });
    });
    const [first, second] = host.httpRequests();
    expect(first?.headers).toEqual([["content-type", "application/json"]]);
    expect(first?.body).toEqual({ type: "text", text: '{"a":1}' });
    expect([first?.delayMs(), second?.delayMs()]).toEqual([0, 200]);
    const both = () => new http.Request("GET", "https://a.example", { text: "a", json: 1 });
    expect(thrown(both).message).toContain("only one of");
  });

  test.each([
    [429, "rate-limited", true],
    [408, "unavailable", true],
    [500, "unavailable", true],
    [404, "not-found", false],
    [400, "http-status", false],
  ])("a response with status %i fails as %s", (status, code, retryable) => {
    const failure = thrown(() => new http.Response({ status, url: "https://a" }).ok());
    expect(failure).toMatchObject({ code, retryable });
  });
});

describe("SQL", () => {
  const row = (value: sql.Value) => new sql.Rows(["a"], [[value]]).one();

  test("values of both databases convert", () => {
    expect(row(1).get("a", z.boolean())).toBe(true);
    expect(thrown(() => row(2).get("a", z.boolean())).code).toBe("invalid");
    expect(row(new sql.Other("1.50")).get("a", z.number())).toBe(1.5);
    expect(row(new sql.Other("1.50")).get("a", z.string())).toBe("1.50");
    expect(row(new sql.Real(2)).get("a", z.number())).toBe(2);
    expect(row('{"a":1}').get("a", z.object({ a: z.int() }))).toEqual({ a: 1 });
    expect(row(new sql.JsonValue([1])).get("a", z.array(z.int()))).toEqual([1]);
    expect(row(null).get("a", z.string().nullable())).toBeNull();
    expect(row(2n ** 60n).get("a", z.bigint())).toBe(2n ** 60n);
  });

  test("errors name the column", () => {
    const failure = thrown(() => row("x").get("a", z.int()));
    expect(failure.message).toMatch(/^column `a` is text: /);
    expect(thrown(() => row("x").get("name", z.string())).message).toContain("`name`");
    expect(thrown(() => new sql.Rows().one()).code).toBe("not-found");
  });

  test("a rounded integer cannot be read", () => {
    const rounded = row(new sql.Inexact(2 ** 60));
    for (const read of [() => rounded.get("a", z.unknown()), () => rounded.toJson()]) {
      expect(thrown(read).message).toContain("CAST(column AS TEXT)");
    }
    expect(thrown(() => row(2n ** 60n).toJson()).message).toContain("beyond 2^53");
  });

  test("rows become JSON objects", () => {
    const rows = new sql.Rows(["a", "b"], [[1, null]]);
    expect(rows.toJson()).toEqual([{ a: 1, b: null }]);
    expect(row(Uint8Array.of(104, 105)).toJson()).toEqual({ a: "aGk=" });
  });

  test.each([
    [undefined, "is undefined; use null"],
    [Number.NaN, "is NaN"],
    [2 ** 60, "is an integer beyond 2^53"],
    [{ a: 1 }, "use `sql.json`"],
    [[1], "use `sql.json`"],
  ])("the parameter %s is rejected", (value, message) => {
    const query = () => sql.database("a").query("SELECT $1", [value as never]);
    expect(thrown(() => new FakeHost().run(query)).message).toContain(message);
  });

  test("a transaction is committed, or rolled back if its work throws", () => {
    const host = new FakeHost().sql(() => 1);
    const run = (fails: boolean) =>
      host.run(() =>
        sql.database("a").transaction((transaction) => {
          transaction.execute("DELETE FROM item");
          if (fails) throw Failure.conflict("stop");
        }),
      );
    run(false);
    expect(thrown(() => run(true)).message).toBe("stop");
    const texts = host.statements().map(({ text }) => text);
    const expected = [
      "BEGIN",
      "DELETE FROM item",
      "COMMIT",
      "BEGIN",
      "DELETE FROM item",
      "ROLLBACK",
    ];
    expect(texts).toEqual(expected);
    expect(host.run(() => sql.database("a").dialect())).toBe("sqlite");
  });

  test("a transaction whose work returns a promise is rolled back", () => {
    const host = new FakeHost().sql(() => 1);
    const work = async (transaction: sql.Transaction) => {
      transaction.execute("DELETE FROM item");
      throw Failure.conflict("stop");
    };
    const failure = thrown(() =>
      host.run(() =>
        sql.database("a").transaction((transaction) => {
          const promise = work(transaction);
          // Vitest reports rejections that nothing handles.
          promise.catch(() => {});
          return promise;
        }),
      ),
    );
    expect(failure.code).toBe("internal");
    expect(failure.message).toContain("the work of a transaction returned a promise");
    const texts = host.statements().map(({ text }) => text);
    expect(texts).toEqual(["BEGIN", "DELETE FROM item", "ROLLBACK"]);
  });
});

describe("the memory", () => {
  test("searches filter and rank", () => {
    new FakeHost().run(() => {
      memory.put(["a", "1"], "tea", { text: "green tea", n: 1 });
      memory.put(["a", "2"], "dog", { text: "a dog", n: 2 });
      memory.put(["b", "1"], "cat", { text: "a cat" });
      const keys = (prefix: string[], options: memory.SearchOptions) =>
        memory.search(prefix, options).map(({ key }) => key);
      expect(keys(["a"], { query: "Tea dog GREEN" })).toEqual(["tea", "dog"]);
      expect(keys([], { filter: { n: { $gt: 1, $ne: 3 } } })).toEqual(["dog"]);
      expect(keys([], { filter: { n: null } })).toEqual(["cat"]);
      expect(keys([], { limit: 1, offset: 1 })).toHaveLength(1);
      expect(thrown(() => keys([], { filter: { n: { $in: [1] } } })).code).toBe("invalid");
      expect(memory.listNamespaces(["*", "1"], { maxDepth: 1 })).toEqual([["a"], ["b"]]);
      expect(memory.get(["a", "1"], "tea")?.valueAs(z.object({ n: z.int() }))).toEqual({ n: 1 });
    });
  });

  test("a document expires", () => {
    const host = new FakeHost();
    host.run(() => {
      memory.putFor(["a"], "cart", "tea", 60_000);
      expect(memory.get(["a"], "cart")?.value).toBe("tea");
      host.advanceMs(60_000);
      expect(memory.get(["a"], "cart")).toBeUndefined();
    });
  });
});

describe("clocks and random numbers", () => {
  test.each([
    [0, "1970-01-01", 4],
    [951_782_400_000, "2000-02-29", 2],
    [1_772_323_200_000, "2026-03-01", 7],
    [-86_400_000, "1969-12-31", 3],
    [-62_000_000_000_000, "0005-04-19", 2],
  ])("the instant %i converts in both directions", (ms, date, weekday) => {
    new FakeHost().run(() => {
      const zoned = clock.toZone(ms);
      expect([clock.date(zoned.civil), zoned.weekday]).toEqual([date, weekday]);
      expect(clock.fromZone(zoned.civil)).toBe(ms);
    });
  });

  test.each([
    [-1, "-001-03-01"],
    [-12_345, "-12345-03-01"],
    [0, "0000-03-01"],
    [12_345, "12345-03-01"],
  ])("the year %i of a date has four characters or more", (year, date) => {
    expect(clock.date(clock.midnight(year, 3, 1))).toBe(date);
  });

  test("an unknown zone is rejected with what to do", () => {
    const host = new FakeHost().zone("Asia/Tokyo", 9 * 3600);
    host.run(() => {
      expect(clock.toZone(1_772_323_199_999).civil).toMatchObject({ hour: 8, millisecond: 999 });
      expect(thrown(() => clock.toZone(0, "Mars")).message).toContain("`FakeHost.zone`");
    });
  });

  test("UUIDs have version 4", () => {
    new FakeHost().run(() => {
      expect(random.uuid()).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      expect(random.bytes(5000)).toHaveLength(4096);
    });
  });
});

describe("runs", () => {
  test("outcomes have a state, a question or a failure", () => {
    const run = { threadId: "t", runId: "r" };
    const ended = (outcome: runs.Outcome) => new runs.EndedRun({ run, outcome, state: { n: 1 } });
    expect(ended({ type: "completed" }).completed()).toEqual({ n: 1 });
    expect(ended({ type: "completed" }).channel("n", z.int())).toBe(1);
    expect(ended({ type: "completed" }).channel("m", z.int())).toBeUndefined();
    expect(thrown(() => ended({ type: "completed" }).question()).code).toBe("conflict");
    expect(thrown(() => ended({ type: "cancelled" }).completed()).code).toBe("cancelled");
    const failure = Failure.timeout("late");
    expect(thrown(() => ended({ type: "failed", failure }).question())).toBe(failure);
  });

  test("a script can reject a start", () => {
    const host = new FakeHost().starts(() => {
      throw Failure.notFound("no graph");
    });
    host.run(() => expect(thrown(() => runs.startAndWait({ graph: "a" })).code).toBe("not-found"));
    expect(host.started()).toEqual([]);
  });

  test("a start can reject a thread that waits for answers", () => {
    const question = new runs.Interrupt("q", "n", {});
    const host = new FakeHost()
      .thread({ threadId: "a", graph: "g", status: "interrupted", interrupts: [question] })
      .thread({ threadId: "b", graph: "g", status: "interrupted" });
    const start = (threadId: string, rejectIfInterrupted: boolean) =>
      host.run(() => runs.start({ graph: "g", threadId, rejectIfInterrupted }));
    const rejected = thrown(() => start("a", true));
    expect(rejected).toMatchObject({ code: "conflict", details: { reason: "interrupted" } });
    start("b", true);
    start("a", false);
    expect(host.started().map(({ threadId, extra }) => [threadId, extra])).toEqual([
      ["b", { reject_if_interrupted: true }],
      ["a", {}],
    ]);
  });

  test("threads are listed in pages, and an updated one comes first", () => {
    const tea = { title: "Tea", of: { id: 7, new: true }, cups: [{ a: 1, b: 2 }] };
    const host = new FakeHost()
      .thread({ threadId: "a", graph: "notes", updatedMs: 1, metadata: tea })
      .thread({ threadId: "b", graph: "notes", updatedMs: 5, metadata: { title: "Coffee" } })
      .thread({ threadId: "c", graph: "other", updatedMs: 5 });
    const ids = (search: runs.ThreadSearchOptions = {}) =>
      host.run(() => runs.threads(search).threads.map(({ threadId }) => threadId)).join("");
    expect(ids()).toBe("bca");
    expect(ids({ graph: "notes" })).toBe("ba");
    expect(ids({ text: "TEA" })).toBe("a");
    expect(ids({ metadata: { of: { id: 7 } } })).toBe("a");
    expect(ids({ metadata: { of: 7 } })).toBe("");
    expect(ids({ metadata: { cups: [{ b: 2, a: 1 }] } })).toBe("a");
    expect(ids({ metadata: { cups: [{ a: 1 }] } })).toBe("");
    expect(ids({ limit: 0 })).toBe("b");
    const { next } = host.run(() => runs.threads({ limit: 2 }));
    expect(ids({ limit: 2, after: next })).toBe("a");
    host.run(() => {
      runs.updateThread("a", { title: "Green tea" });
      expect(runs.thread("a")?.metadata).toEqual({ ...tea, title: "Green tea" });
      expect(thrown(() => runs.updateThread("nobody", {})).code).toBe("not-found");
      expect(thrown(() => runs.events("nobody", 0, 1)).code).toBe("not-found");
      expect(thrown(() => runs.updateThread("a", "x")).code).toBe("invalid");
      expect(thrown(() => runs.threads({ after: "x" })).code).toBe("invalid");
    });
    expect(ids()).toBe("abc");
  });

  test("events have types, and unknown ones are kept", () => {
    const base = { seq: 1, at_ms: 2, run: "r" };
    const ended = runs.readEvent({ ...base, type: "run_ended", status: "completed" });
    expect(ended.type === "run_ended" && ended.status).toBe("completed");
    const unknown = { ...base, type: "progress", done: 1 };
    expect(runs.readEvent(unknown)).toEqual({ ...base, type: "other", event: unknown });
    const wrong: Json = { ...base, type: "run_ended" };
    expect(thrown(() => runs.readEvent(wrong)).message).toContain("`status`");
    expect(thrown(() => runs.readEvent({ seq: 1 })).message).toContain("`at_ms`");
    expect(["llm.complete", "llm.stream", "tools.call"].map(runs.isModelCall)).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe("settings and tenants", () => {
  test("a required setting is named", () => {
    const host = new FakeHost().setting("rows", "many");
    host.run(() => {
      expect(thrown(() => settings.require("zone", z.string())).message).toContain("`[settings]`");
      expect(thrown(() => settings.get("rows", z.int())).message).toContain("setting `rows`");
    });
  });

  test.each([
    [undefined, undefined],
    ["", undefined],
    [" \u0085\n", undefined],
    [" zh\u3000", "zh"],
    ["\ufeffzh CN", "\ufeffzh CN"],
  ])("the text setting %j is %j", (setting, expected) => {
    const host = new FakeHost();
    if (setting !== undefined) host.setting("language", setting);
    host.run(() => {
      expect(settings.text("language")).toBe(expected);
      expect(settings.textOr("language", "en")).toBe(expected ?? "en");
    });
  });

  test("a text setting of another type is rejected", () => {
    const failure = thrown(() =>
      new FakeHost().setting("zone", 8).run(() => settings.text("zone")),
    );
    expect(failure.code).toBe("invalid");
    expect(failure.message).toContain("setting `zone`");
  });

  test("the key of a route is recorded and never returned", () => {
    const host = new FakeHost();
    host.run(() => tenants.setRoute("chat", { model: "m", key: "k", api_key: "a" }));
    expect(host.run(() => tenants.getRoute("chat"))).toEqual({ model: "m" });
    expect(host.setRoutes()).toEqual([["chat", { model: "m", key: "k", api_key: "a" }]]);
  });
});
