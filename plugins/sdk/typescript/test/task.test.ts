// Structured tasks: which candidates get which requests, and which failure is reported.

import { describe, expect, test } from "vitest";
import { Failure, type Json, llm } from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import * as z from "zod";
import { thrown } from "./thrown.ts";

const TASK = new llm.Task("plan", { maxOutputTokens: 8_192, timeoutMs: 60_000, retries: 2 });

const Answer = z.object({ number: z.int() });

type Results = Array<llm.Completion | Failure>;

/** Returns a host with two candidates that return these results in turn, and then the number 2. */
function hostOf(results: Results): FakeHost {
  const left = [...results];
  return new FakeHost()
    .route("plan", { provider: "google", model: "large", hasFallback: true })
    .llm(() => {
      const result = left.shift() ?? number(2);
      if (result instanceof Failure) throw result;
      return result;
    });
}

/** Runs a task that requires an even number. */
function run(host: FakeHost): llm.Checked<number> {
  const check = (answer: z.output<typeof Answer>) => {
    if (answer.number % 2 !== 0) throw new llm.Refusal(`${answer.number} is odd`);
    return answer.number;
  };
  return host.run(() => TASK.document("Be strict.", "Give one.", Answer, check));
}

function number(number: number): llm.Completion {
  return llm.Completion.ofJson({ number });
}

/** Returns the candidate of each request. */
function asked(host: FakeHost): Array<Json | undefined> {
  return host.llmRequests().map(({ extra }) => extra.candidate);
}

/** Returns the texts of the requests. */
function texts(host: FakeHost): string[] {
  return host.llmRequests().map((request) => request.text());
}

/** Returns the failure of a completion that violates the schema. */
function wrongShape(): Failure {
  const details = { answer: "{}", attempts: tried("pro", 1) };
  return Failure.invalid("did not answer in the wanted shape:\n`/number` is text", { details });
}

/** Returns attempts as the host reports them. */
function tried(model: string, tries: number): Json {
  return [{ provider: "google", model, tries }];
}

function away(attempts?: Json): Failure {
  return Failure.unavailable("away", attempts === undefined ? {} : { details: { attempts } });
}

describe("requests of a task", () => {
  test("they have the limits and the schema of the task", () => {
    const host = hostOf([number(4)]);
    expect(run(host).value).toBe(4);
    const [request] = host.llmRequests();
    expect([request?.route, request?.maxOutputTokens]).toEqual(["plan", 8_192]);
    const extra = { timeout_ms: 60_000, candidate: 0, repair: false, retries: 2 };
    expect(request?.extra).toEqual(extra);
    expect(request?.responseSchema).toMatchObject({
      name: "plan",
      schema: { required: ["number"] },
    });
    expect(texts(host)).toEqual(["Be strict.\nGive one."]);
  });

  test("a task can have a route, a temperature and a refusal of its own", () => {
    const options = { route: "plan", temperature: 0.5, refusal: "No:\n{{reasons}}\n", retries: 1 };
    const other = new llm.Task("other", options);
    const host = hostOf([]);
    const refuse = () => {
      throw new llm.Refusal("never");
    };
    const failure = thrown(() => host.run(() => other.document("", "Give one.", Answer, refuse)));
    expect(failure.message).toMatch(/^no model could do task `other`: /);
    const [first] = host.llmRequests();
    expect([first?.route, first?.temperature]).toEqual(["plan", 0.5]);
    expect(first?.responseSchema?.name).toBe("other");
    expect(first?.extra).not.toHaveProperty("timeout_ms");
    expect(texts(host)[1]).toBe("\nGive one.\n\nNo:\n- never");
  });

  test.each(["No.", "No: {{why}}", "No: {{reasons"])(
    "the template %j of a refusal fails before the first request",
    (refusal) => {
      const host = hostOf([]);
      const task = new llm.Task("plan", { refusal });
      const failure = thrown(() => host.run(() => task.text("", "", String)));
      expect(failure.code).toBe("internal");
      expect(host.llmRequests()).toEqual([]);
    },
  );

  test("reasons of the last completion are in the next request", () => {
    const host = hostOf([number(3), wrongShape()]);
    expect(run(host).value).toBe(2);
    expect(texts(host)[1]).toBe(
      "Be strict.\nGive one.\n\nAn earlier answer was refused for these reasons:\n- 3 is odd\n" +
        "Answer again, whole, with all of them corrected.",
    );
    expect(texts(host)[2]).toContain("- `/number` is text\n");
    expect(texts(host)[2]).not.toContain("3 is odd");
    const next = hostOf([number(1), away(), away()]);
    run(next);
    expect(asked(next)).toEqual([0, 0, 0, 1]);
    expect(texts(next)[3]).toContain("1 is odd");
  });

  test("reasons are bounded", () => {
    const host = hostOf([]);
    const reasons = Array.from({ length: 40 }, (_, n) => `error ${n}\n ${"x".repeat(900)}`);
    const refuse = () => {
      throw new llm.Refusal(...reasons);
    };
    const failure = thrown(() => host.run(() => TASK.document("", "", Answer, refuse)));
    const text = texts(host)[1] ?? "";
    expect(text).toContain("- error 11 x");
    expect(text).not.toContain("- error 12 ");
    expect(text.length).toBeLessThan(12 * 400);
    expect(failure.message.length).toBeLessThan(2 * 12 * 400);
  });
});

describe("attempts of a task", () => {
  const notFound = Failure.invalid("no such model", { details: { status: 404 } });
  const busy = Failure.unavailable("busy", { details: { retry_after_ms: 90_000 } });
  const good = new llm.Completion({ ...number(2), extra: { attempts: tried("pro", 2) } });

  test.each<[string, Results, string, number[]]>([
    ["the first", [number(2)], "google:large (attempts=1)", [0]],
    ["a refusal", [number(1), good], "google:pro (attempts=3)", [0, 0]],
    [
      "all causes",
      [away(), wrongShape(), number(1), away()],
      "fallback 1 (attempts=2)",
      [0, 0, 0, 1, 1],
    ],
    ["retries of the host", [away(tried("pro", 3))], "fallback 1 (attempts=1)", [0, 1]],
    ["a permanent failure", [notFound], "fallback 1 (attempts=1)", [0, 1]],
    ["a long delay", [busy], "fallback 1 (attempts=1)", [0, 1]],
  ])("they are counted for each candidate: %s", (_, results, origin, candidates) => {
    const host = hostOf(results);
    expect(run(host).origin()).toBe(origin);
    expect(asked(host)).toEqual(candidates);
  });

  test("retries of the host count", () => {
    const host = hostOf([number(1), away(tried("pro", 1))]);
    run(host);
    expect(host.llmRequests().map(({ extra }) => extra.retries)).toEqual([2, 1, 0]);
  });

  test("the failure names the task, the models and their reasons", () => {
    const host = hostOf(Array.from({ length: 6 }, () => number(7)));
    const failure = thrown(() => run(host));
    expect(asked(host)).toEqual([0, 0, 0, 1, 1, 1]);
    expect([failure.code, failure.retryable]).toEqual([llm.TASK_FAILED, false]);
    expect(failure.message).toBe(
      "no model could do task `plan`: `google:large` (attempts=3): 7 is odd | " +
        "`fallback 1` (attempts=3): 7 is odd",
    );
    const models = ["google:large", "fallback 1"].map((model) => {
      return { model, attempts: 3, errors: ["7 is odd"] };
    });
    expect(failure.details).toEqual({ task: "plan", models });
    expect(host.logged().map(({ level }) => level)).toEqual(["warn", "warn"]);
  });

  test("a document of another type is refused", () => {
    const host = hostOf([llm.Completion.ofJson({ number: "x" })]);
    expect(run(host).attempts).toBe(2);
    expect(texts(host)[1]).toContain("is invalid at `number`");
  });

  test("a text is complete before it is checked", () => {
    const ended = (finishReason: llm.FinishReason) => {
      return new llm.Completion({ ...llm.Completion.ofText("<html>"), finishReason });
    };
    const others = [" ", "no", "<html>"].map((text) => llm.Completion.ofText(text));
    const host = hostOf([ended("length"), ended("content-filter"), ...others]);
    const check = (text: string) => {
      if (!text.includes("<html>")) throw new llm.Refusal("`<html>` is missing");
      return text.length;
    };
    expect(host.run(() => TASK.text("", "", check)).value).toBe(6);
    expect(asked(host)).toEqual([0, 0, 0, 1, 1]);
    expect(host.llmRequests()[0]?.responseSchema).toBeUndefined();
    const reasons = ["cut off", "withheld", "is empty", "`<html>` is missing"];
    reasons.forEach((reason, at) => {
      expect(texts(host)[at + 1]).toContain(reason);
    });
  });

  test("a cancelled run sends no further request", () => {
    const host = hostOf([new Failure("cancelled", "stopped")]);
    expect(thrown(() => run(host)).code).toBe("cancelled");
    expect(host.llmRequests()).toHaveLength(1);
  });

  test("another exception of the check ends the task", () => {
    const host = hostOf([]);
    const check = () => {
      throw Failure.conflict("not now");
    };
    const failure = thrown(() => host.run(() => TASK.text("", "", check)));
    expect([failure.code, host.llmRequests().length]).toEqual(["conflict", 1]);
  });

  test("a missing route is reported with the task", () => {
    const failure = thrown(() => new FakeHost().run(() => TASK.text("", "", String)));
    expect(failure.message).toMatch(/^plan: /);
  });
});
