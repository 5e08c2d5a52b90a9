// Calls of the host as a component makes them, with the values of both engines.

import { describe, expect, test } from "vitest";
import { Failure, http, llm, Message, memory, sql, tools } from "wattle-plugin";
import * as z from "zod";
import * as answerBlob from "../src/testing/answer/blob.ts";
import * as answerClock from "../src/testing/answer/clock.ts";
import * as answerEmit from "../src/testing/answer/emit.ts";
import * as answerHttp from "../src/testing/answer/http.ts";
import * as answerInterrupt from "../src/testing/answer/interrupt.ts";
import * as answerLlm from "../src/testing/answer/llm.ts";
import * as answerLog from "../src/testing/answer/log.ts";
import * as answerMemory from "../src/testing/answer/memory.ts";
import * as answerRandom from "../src/testing/answer/random.ts";
import * as answerRuns from "../src/testing/answer/runs.ts";
import * as answerSettings from "../src/testing/answer/settings.ts";
import * as answerSql from "../src/testing/answer/sql.ts";
import * as answerTenants from "../src/testing/answer/tenants.ts";
import * as answerTools from "../src/testing/answer/tools.ts";
import * as blob from "../src/wire/blob.ts";
import * as clock from "../src/wire/clock.ts";
import * as emit from "../src/wire/emit.ts";
import * as wireHttp from "../src/wire/http.ts";
import * as interrupt from "../src/wire/interrupt.ts";
import * as wireLlm from "../src/wire/llm.ts";
import * as log from "../src/wire/log.ts";
import * as wireMemory from "../src/wire/memory.ts";
import * as random from "../src/wire/random.ts";
import * as runs from "../src/wire/runs.ts";
import * as settings from "../src/wire/settings.ts";
import * as wireSql from "../src/wire/sql.ts";
import * as tenants from "../src/wire/tenants.ts";
import * as wireTools from "../src/wire/tools.ts";
import { calls, fail, host } from "./contract.ts";
import { thrown } from "./thrown.ts";

/** The imports in a component, whose types are those of the imports in a test. */
const TWINS: Array<[component: object, test: object]> = [
  [blob satisfies typeof answerBlob, answerBlob],
  [clock satisfies typeof answerClock, answerClock],
  [emit satisfies typeof answerEmit, answerEmit],
  [wireHttp satisfies typeof answerHttp, answerHttp],
  [interrupt satisfies typeof answerInterrupt, answerInterrupt],
  [wireLlm satisfies typeof answerLlm, answerLlm],
  [log satisfies typeof answerLog, answerLog],
  [wireMemory satisfies typeof answerMemory, answerMemory],
  [random satisfies typeof answerRandom, answerRandom],
  [runs satisfies typeof answerRuns, answerRuns],
  [settings satisfies typeof answerSettings, answerSettings],
  [wireSql satisfies typeof answerSql, answerSql],
  [tenants satisfies typeof answerTenants, answerTenants],
  [wireTools satisfies typeof answerTools, answerTools],
];

test("imports have the same functions in a component and in a test", () => {
  for (const [component, test] of TWINS) {
    expect(Object.keys(component).sort()).toEqual(Object.keys(test).sort());
  }
});

const COMPLETION = {
  parts: [
    { tag: "text", val: "so" },
    { tag: "tool-call", val: { id: "c", name: "add", arguments: '{"a":1}', extra: [] } },
  ],
  structured: '{"a":1}',
  finishReason: { tag: "tool-calls" },
  usage: { inputTokens: 3n, outputTokens: 4, cachedInputTokens: null, extra: [] },
  model: "m",
  extra: [["id", '"x"']],
};

describe("failures", () => {
  test("a failure of the host is thrown, with its details", () => {
    host(() => fail({ code: "denied", message: "add a grant", details: '{"a":1}' }));
    for (const call of [
      () => blob.stat("blob:1"),
      () => clock.toZone(0, "Mars"),
      () => emit.custom("a", 1),
      () => interrupt.ask({ payload: 1, responseSchema: undefined, extra: {} }),
      () => runs.thread("t"),
      () => tenants.removeRoute("chat"),
      () => wireHttp.send(new http.Request("GET", "https://a")),
      () => wireLlm.route("chat"),
      () => wireMemory.get(["a"], "b"),
      () => wireSql.dialect("db"),
      () => wireTools.list(),
    ]) {
      const failure = thrown(call);
      expect(failure).toMatchObject({ code: "denied", message: "add a grant", details: { a: 1 } });
    }
  });

  test("another exception is kept", () => {
    host(() => {
      throw new TypeError("defect");
    });
    expect(() => wireSql.dialect("db")).toThrow(TypeError);
  });
});

describe("models", () => {
  test("a request and its completion are converted", () => {
    host(() => COMPLETION);
    const completion = wireLlm.complete(
      new llm.Request({
        route: "chat",
        messages: [
          new Message("narrator", [
            "a",
            { type: "image", source: { type: "url", url: "https://a" }, mediaType: "image/png" },
            { type: "tool_result", callId: "c", content: "3", isError: false },
            { type: "other", value: { type: "provider_state" } },
          ]),
        ],
        tools: [llm.ToolDefinition.of("add", "Adds.", z.object({}))],
        toolChoice: { tool: "add" },
        schema: { name: "verdict", type: z.object({}) },
        seed: 7,
        retries: 1,
      }),
    );
    expect(calls).toEqual([
      [
        "llm.complete",
        [
          {
            route: "chat",
            messages: [
              {
                role: { tag: "other", val: "narrator" },
                parts: [
                  { tag: "text", val: "a" },
                  {
                    tag: "image",
                    val: {
                      source: { tag: "url", val: "https://a" },
                      mediaType: "image/png",
                      extra: [],
                    },
                  },
                  {
                    tag: "tool-result",
                    val: { callId: "c", content: "3", isError: false, extra: [] },
                  },
                  { tag: "other", val: '{"type":"provider_state"}' },
                ],
                extra: [],
              },
            ],
            tools: [
              {
                name: "add",
                description: "Adds.",
                argumentsSchema: '{"type":"object","properties":{}}',
                extra: [],
              },
            ],
            toolChoice: { tag: "tool", val: "add" },
            responseSchema: { name: "verdict", schema: '{"type":"object","properties":{}}' },
            temperature: null,
            maxOutputTokens: null,
            seed: 7,
            stop: [],
            extra: [["retries", "1"]],
          },
        ],
      ],
    ]);
    expect(completion.text()).toBe("so");
    expect(completion.toolCalls()).toMatchObject([{ type: "tool_call", arguments: { a: 1 } }]);
    expect(completion.structured).toEqual({ a: 1 });
    expect([completion.finishReason, completion.id()]).toEqual(["tool-calls", "x"]);
    expect(completion.usage).toMatchObject({
      inputTokens: 3,
      outputTokens: 4,
      cachedInputTokens: undefined,
      reasoningTokens: undefined,
    });
  });

  test("a batch has completions and failures", () => {
    const failure = { code: "timeout", message: "late", retryable: true };
    host(() => [
      { tag: "err", val: failure },
      { tag: "ok", val: COMPLETION },
    ]);
    const [first, second] = wireLlm.completeAll([new llm.Request({ route: "chat" })]);
    expect(first).toBeInstanceOf(Failure);
    expect(second).toBeInstanceOf(llm.Completion);
  });

  test("a stream has its deltas, and is closed as a resource", () => {
    const deltas = [
      [
        { tag: "reasoning", val: "hm" },
        { tag: "tool-call-delta", val: [0, null, "{"] },
        { tag: "other", val: '{"kind":"restart"}' },
        { tag: "other", val: "1" },
      ],
      [],
    ];
    let isOpen = true;
    const next = () => deltas.shift();
    const close = () => {
      isOpen = false;
    };
    host(() => ({ next, finish: () => COMPLETION, [Symbol.dispose]: close }));
    const stream = new llm.CompletionStream(wireLlm.stream(new llm.Request({ route: "chat" })));
    expect([...stream]).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "tool_call_delta", index: 0, name: undefined, arguments: "{" },
      { type: "restart" },
      { type: "other", value: 1 },
    ]);
    expect(stream.finish().model).toBe("m");
    stream.close();
    expect(isOpen).toBe(false);
  });
});

describe("SQL", () => {
  const rows = (...values: unknown[]) => {
    const columns = values.map((_, index) => ({ name: `c${index}`, typeName: "" }));
    return { columns, rows: [values], truncated: true };
  };

  test("parameters have the types of the database", () => {
    host(() => rows());
    const parameters = [null, true, 1, 1.5, "a", 2n, sql.real(2), sql.json({ a: 1 })];
    const found = wireSql.query("db", "q", [...parameters, new sql.Other("1"), new Uint8Array(1)]);
    expect(found.truncated).toBe(true);
    const [[, [database, statement, values] = []] = []] = calls as [string, unknown[]][];
    expect([database, statement]).toEqual(["db", "q"]);
    expect(values).toEqual([
      { tag: "null" },
      { tag: "boolean", val: true },
      { tag: "integer", val: 1 },
      { tag: "real", val: 1.5 },
      { tag: "text", val: "a" },
      { tag: "integer", val: 2 },
      { tag: "real", val: 2 },
      { tag: "json", val: '{"a":1}' },
      { tag: "other", val: "1" },
      { tag: "bytes", val: new Uint8Array(1) },
    ]);
  });

  test("integers of both engines are read, or known to be rounded", () => {
    const integers = [7, 7n, 2n ** 60n, 2 ** 60].map((val) => ({ tag: "integer", val }));
    host(() => rows(...integers, { tag: "real", val: 2 }, { tag: "json", val: "[1]" }));
    const [values] = wireSql.query("db", "q", []).values;
    expect(values).toEqual([
      7,
      7,
      2n ** 60n,
      new sql.Inexact(2 ** 60),
      new sql.Real(2),
      new sql.JsonValue([1]),
    ]);
  });

  test("an integer beyond 2^53 is written by one engine only", () => {
    host(() => ({ rowsAffected: 1n, returned: rows() }));
    expect(wireSql.execute("db", "q", [2n ** 60n]).rowsAffected).toBe(1);
    const global = globalThis as unknown as Record<string, unknown>;
    Object.assign(global, { __cqjs: {} });
    try {
      const failure = thrown(() => wireSql.execute("db", "q", [1, 2n ** 60n]));
      expect(failure.message).toContain("the parameter `$2`");
    } finally {
      delete global.__cqjs;
    }
  });

  test("a transaction is a resource", () => {
    const ended: string[] = [];
    host(() => ({
      query: () => rows({ tag: "boolean", val: true }),
      execute: () => fail({ code: "conflict", message: "again", details: null }),
      commit: () => void ended.push("commit"),
      rollback: () => void ended.push("rollback"),
    }));
    const transaction = wireSql.begin("db");
    expect(transaction.query("q", []).values).toEqual([[true]]);
    expect(thrown(() => transaction.execute("q", [])).code).toBe("conflict");
    transaction.rollback();
    transaction.commit();
    expect(ended).toEqual(["rollback", "commit"]);
  });
});

describe("other interfaces", () => {
  test("requests and responses of HTTP are converted", () => {
    const body = new TextEncoder().encode("ok");
    const response = { status: 200, headers: [["a", "b"]], body, url: "https://a", extra: [] };
    host(() => response);
    const request = new http.Request("post", "https://a", {
      bytes: body,
      timeoutMs: 5,
      delayMs: 1,
    });
    expect(wireHttp.send(request).text()).toBe("ok");
    expect(calls[0]?.[1]).toEqual([
      {
        method: "POST",
        url: "https://a",
        headers: [],
        body: { tag: "bytes", val: body },
        timeoutMs: 5,
        idempotencyKey: null,
        extra: [["delay_ms", "1"]],
      },
    ]);
  });

  test("tools are listed and called", () => {
    const info = { name: "a", description: "", argumentsSchema: "{}", acceptsInvalid: false };
    const output = {
      content: [{ tag: "text", val: "3" }],
      structured: "3",
      isError: false,
      updates: [{ channel: "n", value: "1", overwrite: true }],
      extra: [],
    };
    host((name) => (name === "tools.list" ? [{ ...info, extra: [] }] : output));
    expect(wireTools.list()[0]?.argumentsSchema).toEqual({});
    const called = wireTools.call(new tools.Call("a", { x: 1 }, { state: { n: 1 } }));
    expect(called).toMatchObject({ structured: 3, updates: [{ value: 1, overwrite: true }] });
    const request = { tool: "a", callId: "", arguments: '{"x":1}', timeoutMs: null };
    expect(calls[1]?.[1]).toEqual([{ ...request, extra: [["state", '{"n":1}']] }]);
  });

  test("the memory, blobs and clocks have numbers", () => {
    const item = {
      namespace: ["a"],
      key: "k",
      value: "1",
      createdMs: 5n,
      updatedMs: 6,
      score: null,
    };
    host((name) => {
      if (name === "memory.get") return item;
      if (name === "memory.search") return [item];
      return name === "blob.stat" ? { blob: "blob:1", size: 5n, mediaType: "a/b" } : 9n;
    });
    expect(wireMemory.get(["a"], "k")).toEqual(
      new memory.Item({ ...item, value: 1, createdMs: 5, score: undefined }),
    );
    const search = {
      prefix: [],
      filter: { a: 1 },
      query: undefined,
      limit: 1,
      offset: 0,
      extra: {},
    };
    expect(wireMemory.search(search)).toHaveLength(1);
    expect(calls[1]?.[1]).toEqual([{ ...search, filter: '{"a":1}', query: null, extra: [] }]);
    wireMemory.putWhileRead(["a"], "k", 1, 60);
    expect(calls[2]).toEqual([
      "memory.putWith",
      [["a"], "k", "1", 60, [["refresh_on_read", "true"]]],
    ]);
    expect(blob.stat("blob:1").size).toBe(5);
    expect([clock.now(), clock.monotonic()]).toEqual([9, 9]);
  });

  test("runs are started, resumed and read", () => {
    const question = { id: "q", node: "n", payload: "1", responseSchema: null, askedMs: 1n };
    const run = { threadId: "t", runId: "r" };
    host((name) => {
      if (name === "runs.wait") {
        return { run, outcome: { tag: "interrupted", val: [question] }, state: "{}" };
      }
      if (name === "runs.events") return ['{"seq":1}'];
      return name === "runs.thread" ? undefined : run;
    });
    expect(runs.wait(run).question().askedMs).toBe(1);
    expect(runs.thread("t")).toBeUndefined();
    expect(runs.events("t", 0, 9)).toEqual([{ seq: 1 }]);
    const answers: Array<[string, number]> = [["", 1]];
    runs.resume({ threadId: "t", answers, onFailure: "reopen", extra: {} });
    const request = {
      threadId: "t",
      answers: [["", "1"]],
      onFailure: { tag: "reopen" },
      extra: [],
    };
    expect(calls.at(-1)).toEqual(["runs.resume", [request]]);
  });

  test("threads are listed and updated", () => {
    const thread = { threadId: "t", graph: "g", status: "idle", createdMs: 1n, updatedMs: 2 };
    host((name) => {
      if (name !== "runs.threads") return undefined;
      return { threads: [{ ...thread, runId: null, metadata: '{"a":1}', extra: [] }], next: "n" };
    });
    const search = { graph: "g", text: undefined, after: undefined, limit: 3, extra: {} };
    expect(runs.threads({ ...search, metadata: { a: 1 } })).toEqual({
      threads: [{ ...thread, runId: undefined, createdMs: 1, metadata: { a: 1 }, extra: {} }],
      next: "n",
    });
    const request = { graph: "g", text: null, metadata: '{"a":1}', after: null };
    expect(calls.at(-1)).toEqual(["runs.threads", [{ ...request, limit: 3, extra: [] }]]);
    runs.updateThread("t", { a: 2 });
    expect(calls.at(-1)).toEqual(["runs.updateThread", ["t", '{"a":2}', []]]);
  });
});
