// Logs of runs with an agent, and the steps and messages that they become. Each model turn has a task of
// each node.

import { describe, expect, test } from "vitest";
import { chat, type Extra, type Json } from "wattle-plugin";

const AGENT = new chat.Agent();

/** Reads the events of the run `r`, one second apart. */
const run = (events: Extra[]) => {
  return events.map((event, index) => {
    return AGENT.read({ ...event, seq: index + 1, at_ms: (index + 1) * 1_000, run: "r" });
  });
};

/** Deltas of reasoning and text. */
const deltas = (turn: number, text: string): Extra => ({
  type: "streamed",
  task: `a${turn}`,
  node: "agent",
  call: 1,
  deltas: [
    { kind: "reasoning", text: "hm" },
    { kind: "text", text },
  ],
});

/** The end of a model call. */
const completed = (turn: number, result: Json): Extra => ({
  type: "called",
  task: `a${turn}`,
  node: "agent",
  call: 1,
  function: "llm.complete",
  request: {},
  result,
  duration_us: 1,
});

/** The result of a model call with reasoning and text. */
const completion = (text: string): Extra => ({ Ok: { parts: [{ reasoning: "hm" }, { text }] } });

/** The end of a model turn that requests tool calls. */
const requested = (
  turn: number,
  ...calls: Array<[id: string, name: string, input: Json]>
): Extra => {
  const tool_calls = calls.map(([id, name, input]) => ({ id, name, arguments: input }));
  const value = { role: "assistant", content: "", tool_calls };
  const writes = [
    { channel: "other", value: 1 },
    { channel: "messages", value },
  ];
  return { type: "task_finished", task: `a${turn}`, node: "agent", writes };
};

/** The start of a tool call. With a scope, a tool makes the call. */
const called = (turn: number, tool = "search", call = 0, scope: number[] = []): Extra => ({
  type: "call_started",
  task: `t${turn}`,
  scope,
  call,
  function: "tools.call",
  summary: `notes/${tool}`,
});

/** The end of a tool call. */
const returned = (turn: number, result: Json, tool = "search", scope: number[] = []): Extra => ({
  ...called(turn, tool, 0, scope),
  type: "called",
  node: "tools",
  request: {},
  result,
  duration_us: 1_500_000,
});

/** The end of the tool calls of a turn, with results for the model. */
const results = (turn: number, ...texts: Array<[id: string, text: string]>): Extra => {
  const value = texts.map(([id, content]) => ({ role: "tool", tool_call_id: id, content }));
  const writes = [{ channel: "messages", value }];
  return { type: "task_finished", task: `t${turn}`, node: "tools", writes };
};

/** The result of a tool that succeeded. */
const good = (structured: Json): Extra => {
  const updates = [{ channel: "notes", value: [] }];
  return { Ok: { content: [{ text: "for the model" }], structured, updates } };
};

/** A result that a model reads as an error. */
const bad = (text: string): Extra => ({ Ok: { content: [{ text }], is_error: true } });

/** The continuation of the run after a restart of the host. */
const RECOVERY: Extra = { type: "run_started", graph: "notes", reason: "recovery" };

/** The end of the run. */
const ended = (status: string): Extra => ({ type: "run_ended", status });

const ASKED = requested(0, ["c", "search", { n: 2 }]);

describe("steps", () => {
  /** Returns ids, status, input, output or error, and duration of each step. */
  const found = (...events: Extra[]) => {
    return AGENT.steps(run(events)).map((step) => [
      step.id,
      step.callId,
      step.status,
      step.input,
      step.output ?? step.error,
      step.durationMs,
    ]);
  };

  const plain = { Ok: { content: [{ text: "a" }, { text: "b" }] } };
  const down = { Err: { code: "timeout", message: "too slow" } };

  test.each<[Extra[], string, Json | undefined, number | undefined]>([
    [[], "RUNNING", undefined, undefined],
    [[returned(0, good([7]))], "SUCCESS", [7], 1500],
    [[returned(0, plain)], "SUCCESS", "ab", 1500],
    [[returned(0, bad("none"))], "ERROR", "none", 1500],
    [[returned(0, down)], "ERROR", "too slow", 1500],
    [[ended("cancelled")], "CANCELLED", "the step was cancelled", 1000],
    [[ended("failed")], "ERROR", "the run ended before the step was finished", 1000],
  ])("a step runs from its call to its result (%#)", (end, status, output, ms) => {
    const step = ["t0:0", "c", status, { n: 2 }, output, ms];
    expect(found(ASKED, called(0), ...end)).toEqual([step]);
  });

  test("steps have the events that changed them", () => {
    const events = [ASKED, called(0)];
    const [running] = AGENT.steps(run(events));
    expect(running).toMatchObject({ tool: "search", seq: 2, startedMs: 2_000 });
    expect([running?.lastSeq(), running?.endedSeq, running?.endedMs]).toEqual([
      2,
      undefined,
      undefined,
    ]);
    const [done] = AGENT.steps(run([...events, returned(0, good({}))]));
    expect(done).toMatchObject({ endedSeq: 3, endedMs: 3_000, isRefused: false });
    expect(done?.lastSeq()).toBe(3);
    expect(done?.writes).toEqual([{ channel: "notes", value: [] }]);
  });

  test("calls that no tool executes are refused steps", () => {
    const events = [
      requested(0, ["a", "search", '{"n": '], ["b", "search", { n: 2 }], ["c", "fly", {}]),
      called(0),
      returned(0, good(1)),
      results(0, ["a", "the arguments break off"], ["b", "short"], ["c", "no tool `fly`"]),
    ];
    expect(found(...events)).toEqual([
      ["t0:0", "b", "SUCCESS", { n: 2 }, 1, 1500],
      ["r:a", "a", "ERROR", '{"n": ', "the arguments break off", 0],
      ["r:c", "c", "ERROR", {}, "no tool `fly`", 0],
    ]);
    const refused = AGENT.steps(run(events)).map(({ isRefused }) => isRefused);
    expect(refused).toEqual([false, true, true]);
  });

  test("calls by reference are those of their tools", () => {
    const events = [
      requested(0, ["a", "maps/search", 1], ["b", "notes/search", 2], ["c", "notes/fly", 3]),
      called(0),
      { ...called(0, "search", 1), summary: "maps/search" },
      returned(0, good(7)),
      results(0, ["a", "short"], ["b", "short"], ["c", "no tool `notes/fly`"]),
    ];
    expect(found(...events)).toEqual([
      ["t0:0", "b", "SUCCESS", 2, 7, 1500],
      ["t0:1", "a", "RUNNING", 1, undefined, undefined],
      ["r:c", "c", "ERROR", 3, "no tool `notes/fly`", 0],
    ]);
    const tools = AGENT.steps(run(events)).map(({ tool }) => tool);
    expect(tools).toEqual(["search", "search", "fly"]);
  });

  test("calls of one turn have their own inputs", () => {
    expect(
      found(
        requested(0, ["a", "search", 1], ["b", "fly", 2], ["c", "search", 3]),
        called(0),
        called(0, "search", 1),
        requested(1),
        called(1),
      ),
    ).toEqual([
      ["t0:0", "a", "RUNNING", 1, undefined, undefined],
      ["t0:1", "c", "RUNNING", 3, undefined, undefined],
      ["t1:0", undefined, "RUNNING", undefined, undefined, undefined],
    ]);
  });

  test("a call that starts again after a restart is one step", () => {
    const steps = found(ASKED, called(0), RECOVERY, called(0), returned(0, good(1)));
    expect(steps).toEqual([["t0:0", "c", "SUCCESS", { n: 2 }, 1, 1500]]);
  });

  test("a call that succeeds after a failed attempt has no error", () => {
    const events = [ASKED, called(0), returned(0, down), called(0), returned(0, good(1))];
    const [step] = AGENT.steps(run(events));
    expect(step).toMatchObject({ status: "SUCCESS", output: 1 });
    expect(step?.error).toBeUndefined();
  });

  test("calls of tools are no steps", () => {
    const inner = [called(0, "load", 0, [0]), returned(0, good(1), "load", [0])];
    expect(found(...inner)).toEqual([]);
    expect(run(inner).some((event) => AGENT.isProgress(event))).toBe(false);
  });

  test.each([
    [RECOVERY, true],
    [ASKED, false],
    [called(0), true],
    [returned(0, bad("none")), true],
    [results(0, ["c", "none"]), false],
    [ended("completed"), true],
  ])("progress begins or ends a run or a step (%#)", (event, isProgress) => {
    expect(run([event]).map((it) => AGENT.isProgress(it))).toEqual([isProgress]);
  });

  test("events are read without what an agent does not need", () => {
    const [asked, ofTool] = run([ASKED, returned(0, good(1), "load", [0])]);
    expect(asked).toMatchObject({ writes: [{ channel: "messages" }] });
    expect(ofTool).toEqual({ seq: 2, at_ms: 2_000, run: "r", type: "other", event: null });
  });
});

describe("messages", () => {
  /** Returns the parts of the message of a run. Outputs are stored as their lengths. */
  const parts = (...log: Extra[]) => {
    const events = run(log);
    const message = AGENT.message(events, AGENT.steps(events), (output) => {
      return JSON.stringify(output).length;
    });
    if (message !== undefined) expect([message.id, message.role]).toEqual(["msg_r", "assistant"]);
    return message?.parts;
  };

  const BEGIN = { type: "step-start" };
  const THOUGHT = { type: "reasoning", text: "hm", state: "done" };
  const text = (text: string) => ({ type: "text", text, state: "done" });
  const tool = (name: string, toolCallId: string, input: Json) => {
    return { type: `tool-${name}`, toolCallId, input };
  };
  const failed = (name: string, id: string, input: Json, errorText: string) => {
    return { ...tool(name, id, input), state: "output-error", errorText };
  };
  const output = (length: number) => ({ state: "output-available", output: length });
  const asked = [completed(0, completion("First.")), requested(0, ["c", "search", {}]), called(0)];

  test("a run is one message with its steps", () => {
    const log = [
      deltas(0, "Let me "),
      completed(0, completion("Let me see.")),
      ASKED,
      called(0),
      returned(0, good({ count: 1 })),
      results(0, ["c", "short"]),
      deltas(1, "Done."),
      completed(1, completion("Done.")),
      requested(1),
      ended("completed"),
    ];
    const search = { ...tool("search", "c", { n: 2 }), ...output(11) };
    const expected = [BEGIN, THOUGHT, text("Let me see."), search, BEGIN, THOUGHT, text("Done.")];
    expect(parts(...log)).toEqual(expected);
  });

  test("output before the end of a run is kept", () => {
    const middle = parts(deltas(0, "In the mid"), ended("cancelled"));
    expect(middle).toEqual([BEGIN, THOUGHT, text("In the mid")]);
    const cancelled = failed("search", "c", {}, "the step was cancelled");
    const lost = failed("search", "c", {}, "the run ended before the step was finished");
    const first = [BEGIN, THOUGHT, text("First.")];
    expect(parts(...asked, ended("cancelled"))).toEqual([...first, cancelled]);
    expect(parts(...asked, ended("failed"))).toEqual([...first, lost]);
    // The tool has not begun.
    expect(parts(...asked.slice(0, 2), ended("cancelled"))).toEqual([...first, cancelled]);
  });

  test("calls of an active run are pending", () => {
    const pending = { ...tool("search", "c", {}), state: "input-available" };
    // The second log ends before the tool begins.
    for (const log of [asked, asked.slice(0, 2), [...asked, RECOVERY]]) {
      expect(parts(...log)).toEqual([BEGIN, THOUGHT, text("First."), pending]);
    }
  });

  test("failed calls have their errors", () => {
    const log = [
      completed(0, completion("")),
      requested(0, ["a", "fly", {}], ["b", "search", {}]),
      called(0),
      returned(0, bad("none")),
      results(0, ["a", "no tool `fly`"], ["b", "none"]),
    ];
    const calls = [failed("fly", "a", {}, "no tool `fly`"), failed("search", "b", {}, "none")];
    expect(parts(...log)).toEqual([BEGIN, THOUGHT, ...calls]);
  });

  test("results in the conversation replace missing steps", () => {
    const log = [
      completed(0, completion("")),
      requested(0, ["a", "fly", {}]),
      results(0, ["a", "no tool `fly`"]),
    ];
    const message = AGENT.message(run(log), [], (output) => output);
    expect(message?.parts[2]).toMatchObject({ errorText: "no tool `fly`" });
  });

  test("repeated output appears once", () => {
    const again = { ...called(0), task: "a0", call: 1, function: "llm.stream", summary: "x" };
    const restart = {
      ...deltas(0, ""),
      deltas: [{ kind: "restart" }, { kind: "text", text: "Hello" }],
    };
    const hello = [BEGIN, THOUGHT, text("Hello")];
    expect(parts(deltas(0, "Hel"), RECOVERY, deltas(0, "Hello"))).toEqual(hello);
    expect(parts(deltas(0, "Hel"), again, deltas(0, "Hello"))).toEqual(hello);
    expect(parts(deltas(0, "Hel"), restart)).toEqual([BEGIN, text("Hello")]);
  });

  test("an unreadable call is shown before the repeated one", () => {
    const unreadable = '{"n": ';
    const call = { id: "a", name: "search", arguments: unreadable };
    const one = { Ok: { parts: [{ text: "One." }, { tool_call: call }] } };
    const log = [
      { ...completed(0, one), call: 0 },
      completed(0, completion("Two.")),
      requested(0, ["b", "search", { n: 2 }]),
      called(0),
      returned(0, good(7)),
    ];
    const error = "the arguments of the call are not valid JSON";
    const first = [BEGIN, text("One."), failed("search", "a", unreadable, error)];
    const search = { ...tool("search", "b", { n: 2 }), ...output(1) };
    expect(parts(...log)).toEqual([...first, BEGIN, THOUGHT, text("Two."), search]);
  });

  test("calls stay if the agent ends without a model call", () => {
    const log = [
      ...asked,
      returned(0, good(7)),
      results(0, ["c", "7"]),
      { ...requested(1), writes: [] },
      ended("completed"),
    ];
    const search = { ...tool("search", "c", {}), ...output(1) };
    expect(parts(...log)).toEqual([BEGIN, THOUGHT, text("First."), search]);
  });

  test.each<[Json]>([
    [{ text: 5 }],
    [{ tool_call: { id: "a", name: 5, arguments: "{" } }],
    [{ unknown: "part" }],
    [{ text: "x", reasoning: "y" }],
  ])("a call keeps its deltas if the completion has the malformed part %j", (part) => {
    const result = { Ok: { parts: [{ text: "Whole." }, part] } };
    const log = [deltas(0, "So far"), completed(0, result)];
    expect(parts(...log)).toEqual([BEGIN, THOUGHT, text("So far")]);
  });

  test("a run without output has no message", () => {
    const down = { Err: { code: "unavailable", message: "down" } };
    expect(parts(completed(0, down), ended("failed"))).toBeUndefined();
    expect(parts(completed(0, { Ok: { parts: "hi" } }))).toBeUndefined();
    expect(parts()).toBeUndefined();
    expect(parts({ ...deltas(0, "for a tool"), scope: [0] })).toBeUndefined();
  });
});
