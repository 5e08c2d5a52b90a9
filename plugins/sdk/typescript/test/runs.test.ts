// Threads and runs of handlers: threads of clients, logs, and requests that arrive twice.

import { describe, expect, test, vi } from "vitest";
import { code, Failure, type Json, runs } from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import * as z from "zod";
import { current } from "../src/testing/state.ts";
import { thrown } from "./thrown.ts";

const RUN: runs.RunRef = { threadId: "t", runId: "r" };

function completed(run: runs.RunRef): runs.EndedRun {
  return new runs.EndedRun({ run, outcome: { type: "completed" } });
}

describe("threads", () => {
  test.each([
    ["notes", "t", true],
    ["orders", "t", false],
    ["notes", "", false],
  ])("a thread of the graph %s with the id %j is found: %s", (graph, id, isFound) => {
    const host = new FakeHost().thread({ threadId: "t", graph: "notes" });
    expect(host.run(() => runs.find(graph, id)) !== undefined).toBe(isFound);
  });

  test.each([code.INVALID, code.NOT_FOUND, code.LIMIT])(
    "a thread with an id that the host refuses as %s is not found",
    (refusal) => {
      new FakeHost().run(() => {
        vi.spyOn(current().threads, "get").mockImplementation(() => {
          throw new Failure(refusal, "no");
        });
        if (refusal === code.LIMIT) expect(thrown(() => runs.find("g", "t")).code).toBe(refusal);
        else expect(runs.find("g", "t")).toBeUndefined();
      });
    },
  );

  test.each<[string, string | undefined, string | undefined]>([
    ["running", "r", "r"],
    ["running", undefined, undefined],
    ["idle", "r", undefined],
    ["interrupted", "r", undefined],
    ["error", "r", undefined],
  ])("a thread that is %s with the run %s has an active run: %s", (status, runId, active) => {
    const thread = new runs.Thread({ threadId: "t", graph: "notes", status, runId });
    expect(thread.isRunning()).toBe(status === "running");
    expect(thread.isInterrupted()).toBe(status === "interrupted");
    expect(thread.activeRun()?.runId).toBe(active);
  });

  test("a cancelled run is awaited", () => {
    const host = new FakeHost().runEnds((run) => ({ run, outcome: { type: "cancelled" } }));
    const ended = host.run(() => runs.cancelAndWait(RUN));
    expect([ended.run, ended.outcome.type]).toEqual([RUN, "cancelled"]);
    expect(host.cancelled()).toEqual([RUN]);
  });

  test("a thread is deleted if it exists", () => {
    const host = new FakeHost().thread({ threadId: "t", graph: "notes" });
    host.run(() => {
      runs.deleteThreadIfAny("t");
      expect(runs.find("notes", "t")).toBeUndefined();
      const deletion = vi.spyOn(current().threads, "delete");
      deletion.mockImplementation(() => {
        throw Failure.notFound("gone");
      });
      runs.deleteThreadIfAny("t");
      deletion.mockImplementation(() => {
        throw new Failure(code.BUSY, "running");
      });
      expect(thrown(() => runs.deleteThreadIfAny("t")).code).toBe(code.BUSY);
    });
  });
});

describe("logs", () => {
  const event = (seq: number, run: string, more: { [key: string]: Json }) => {
    return { seq, at_ms: 5, run, ...more };
  };
  const started = { type: "run_started", graph: "notes", reason: "input" };
  const ended = { type: "run_ended", status: "completed" };

  test("all pages are read, and grouped by run", () => {
    const host = new FakeHost();
    for (let seq = 1; seq <= 2 * runs.PAGE_EVENTS + 1; seq += 1) {
      host.event("t", event(seq, "a", seq === 2 ? ended : started));
    }
    const last = 2 * runs.PAGE_EVENTS + 2;
    host.event("t", event(last, "b", started)).event("t", event(last + 1, "a", ended));
    const all = host.run(() => runs.allEvents("t")) ?? [];
    expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: last + 1 }, (_, at) => at + 1));
    const logs = runs.byRun(all);
    expect(logs.map(({ id, events }) => [id, events.length])).toEqual([
      ["a", last - 1],
      ["b", 1],
      ["a", 1],
    ]);
    expect(logs.map((log) => log.ended()?.seq)).toEqual([2, undefined, last + 1]);
    const rest = host.run(() => runs.allEvents("t", last));
    expect(rest?.map(({ run }) => run)).toEqual(["a"]);
    expect(host.run(() => runs.allEvents("nobody"))).toBeUndefined();
  });

  test("a function of the app reads events, which must have numbers", () => {
    const host = new FakeHost().event("t", event(1, "a", started)).event("t", { type: "odd" });
    const read = (json: Json) => runs.readEvent({ ...(json as object), run: "shown" });
    const failure = thrown(() => host.run(() => runs.allEvents("t", 0, read)));
    expect(failure.message).toContain("the number of an event is invalid");
    const first = new FakeHost().event("t", event(1, "a", started));
    expect(first.run(() => runs.allEvents("t", 0, read))?.[0]?.run).toBe("shown");
  });
});

describe("completions in the log", () => {
  const completion = (name: string, result: Json) => {
    const call = { task: "t", node: "n", call: 3, function: name, request: {}, duration_us: 7 };
    const event = runs.readEvent({ seq: 1, at_ms: 2, run: "r", type: "called", ...call, result });
    return event.type === "called" ? runs.completionOf(event) : undefined;
  };
  const state = { type: "provider_state", data: "x" };
  const down = { code: "unavailable", message: "down", retryable: true };
  const logged: Json = {
    id: "run--1-0",
    parts: [
      { reasoning: "h" },
      { reasoning: "m" },
      { text: "s" },
      { text: "o" },
      { tool_call: { id: "c", name: "add", arguments: '{"a": ' } },
      { image: { source: { url: "https://a/b.png" }, media_type: "image/png" } },
      { other: state },
    ],
    structured: { n: 1 },
    finish_reason: "tool_calls",
    usage: { input_tokens: 3, output_tokens: 2, cached_input_tokens: null, tier: "flex" },
    model: "small-2",
    attempts: [
      { provider: "p", model: "large", tries: 3, error: down },
      { provider: "p", model: "small", tries: 1 },
    ],
  };

  test.each(["llm.complete", "llm.stream"])("the output of %s is typed", (name) => {
    const read = completion(name, { Ok: logged });
    expect([read?.id(), read?.model, read?.text()]).toEqual(["run--1-0", "small-2", "so"]);
    expect(read?.reasoning()).toBe("hm");
    expect(read?.toolCalls()[0]?.arguments).toBe('{"a": ');
    expect(read?.parts.slice(5)).toEqual([
      {
        type: "image",
        source: { type: "url", url: "https://a/b.png" },
        mediaType: "image/png",
        extra: {},
      },
      { type: "other", value: state },
    ]);
    expect(read?.structured).toEqual({ n: 1 });
    expect(read?.finishReason).toBe("tool-calls");
    expect(read?.usage).toEqual({
      inputTokens: 3,
      outputTokens: 2,
      cachedInputTokens: undefined,
      reasoningTokens: undefined,
      extra: { tier: "flex" },
    });
    const tried = read?.attempts().map(({ tries, error }) => [tries, error !== undefined]);
    expect(tried).toEqual([
      [3, true],
      [1, false],
    ]);
  });

  test("an unknown finish reason is a text", () => {
    const withheld = { parts: [], finish_reason: { other: "spam" } };
    expect(completion("llm.complete", { Ok: withheld })?.finishReason).toBe("spam");
  });

  test.each<[string, Json]>([
    ["tools.call", { Ok: { parts: [{ text: "hi" }] } }],
    ["llm.complete", { Err: { code: "timeout", message: "late" } }],
    ["llm.complete", { Ok: { parts: "hi" } }],
    ["llm.complete", { Ok: { parts: [{ text: "hi", more: 1 }] } }],
    ["llm.complete", { Ok: { finish_reason: "spam" } }],
    ["llm.complete", { Ok: { usage: null } }],
    ["llm.complete", { Ok: null }],
  ])("%s with %j has no completion", (name, result) => {
    expect(completion(name, result)).toBeUndefined();
  });
});

describe("requests that arrive twice", () => {
  /** Returns a host with the thread `t`, whose runs complete, and the runs that were awaited. */
  function hostOf(status: string, stored: number | null = null): [FakeHost, string[]] {
    const awaited: string[] = [];
    const host = new FakeHost()
      .thread({ threadId: "t", graph: "review", status, runId: "newest", state: { stored } })
      .runEnds((run) => {
        awaited.push(run.runId);
        return completed(run);
      });
    return [host, awaited];
  }

  function once(host: FakeHost, graph = "review"): runs.ResumeOutcome<number> {
    const request = { threadId: "t", answer: 7 };
    return host.run(() =>
      runs.resumeOnce(graph, request, (thread) => thread.channel("stored", z.int())),
    );
  }

  const ended: runs.ResumeOutcome<number> = {
    type: "ended",
    run: completed({ threadId: "t", runId: "run-1" }),
  };

  test.each<[string, number | null, string, runs.ResumeOutcome<number>]>([
    ["interrupted", null, "review", ended],
    ["interrupted", 3, "review", { type: "done", result: 3 }],
    ["interrupted", null, "other", { type: "not_interrupted" }],
    ["idle", 3, "review", { type: "done", result: 3 }],
    ["idle", null, "review", { type: "not_interrupted" }],
    ["error", null, "review", { type: "not_interrupted" }],
    ["running", 3, "review", { type: "done", result: 3 }],
    ["running", null, "review", { type: "busy" }],
  ])(
    "a thread that is %s with the result %s, of the graph %s",
    (status, stored, graph, outcome) => {
      const [host] = hostOf(status, stored);
      expect(once(host, graph)).toEqual(outcome);
      const answers = host.resumed().map((it) => it.answers);
      expect(answers).toEqual(outcome.type === "ended" ? [[["", 7]]] : []);
    },
  );

  test("a thread that does not exist is not interrupted", () => {
    expect(once(new FakeHost())).toEqual({ type: "not_interrupted" });
  });

  test.each<[Failure, string[]]>([
    [new Failure(code.BUSY, "busy", { details: { run_id: "other" } }), ["other", "run-1"]],
    [new Failure(code.BUSY, "busy"), ["run-1"]],
    [Failure.conflict("answered"), ["run-1"]],
  ])("the active run of another request is awaited (%#)", (failure, runIds) => {
    const [host, awaited] = hostOf("interrupted");
    let isFirst = true;
    host.resumes(() => {
      if (!isFirst) return;
      isFirst = false;
      throw failure;
    });
    expect(once(host)).toEqual(ended);
    expect(awaited).toEqual(runIds);
  });

  test("the active run of the thread is awaited in each attempt", () => {
    const [host, awaited] = hostOf("running");
    expect(once(host)).toEqual({ type: "busy" });
    expect(awaited).toEqual(["newest", "newest", "newest", "newest", "newest"]);
  });

  test.each<[string, string | undefined]>([
    [code.BUSY, "busy"],
    [code.CONFLICT, "busy"],
    [code.NOT_FOUND, "not_interrupted"],
    [code.EXPIRED, "not_interrupted"],
    [code.INVALID, "refused"],
    [code.LIMIT, undefined],
  ])("a resume that fails as %s has the outcome %s", (failureCode, type) => {
    const failure = new Failure(failureCode, "why");
    const [host] = hostOf("interrupted");
    host.resumes(() => {
      throw failure;
    });
    if (type === undefined) expect(thrown(() => once(host))).toBe(failure);
    else expect(once(host).type).toBe(type);
  });

  test("the other run may fail to be awaited", () => {
    const busy = new Failure(code.BUSY, "busy", { details: { run_id: "other" } });
    const host = new FakeHost()
      .thread({ threadId: "t", graph: "review", status: "interrupted" })
      .resumes(() => {
        throw busy;
      });
    expect(once(host)).toEqual({ type: "busy" });
    expect(host.logged().map(({ level }) => level)).toEqual(Array(5).fill("debug"));
  });
});
