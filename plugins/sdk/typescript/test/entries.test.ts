// Nodes, tools, reducers and plugins, as the host sees them.

import { describe, expect, test } from "vitest";
import {
  Context,
  Failure,
  node,
  Outcome,
  plugin,
  reducer,
  ToolContext,
  ToolInfo,
  ToolOutput,
  tool,
  unchecked,
} from "wattle-plugin";
import { callTool, runNode } from "wattle-plugin/testing";
import * as z from "zod";
import { thrown } from "./thrown.ts";

const countWords = node(
  "count_words",
  {
    doc: "Counts the words of a text.",
    input: z.object({ text: z.string(), limit: z.uint32().nullish() }),
    output: z.object({ words: z.int() }),
  },
  ({ text, limit }) => ({ words: text.split(" ").slice(0, limit ?? undefined).length }),
);

const repeat = node(
  "repeat",
  {
    input: z.object({ text: z.string() }),
    output: z.unknown(),
    config: z.strictObject({ times: z.int().default(1).describe("How often.") }),
  },
  ({ text }, context) => ({ text: text.repeat(context.config.times) }),
);

const route = node("route-it", {}, (_input, context) =>
  Outcome.nothing().goto("next").sendWithin("other", { step: context.step }, 50),
);

describe("nodes", () => {
  test("a node is described by its types", () => {
    expect(countWords.inputSchema).toEqual({
      type: "object",
      properties: {
        text: { type: "string" },
        limit: { type: ["integer", "null"], minimum: 0, maximum: 4294967295 },
      },
      required: ["text"],
    });
    expect(countWords.outputSchema).toEqual({
      type: "object",
      properties: { words: { type: "integer" } },
      required: ["words"],
    });
    expect([route.inputSchema, route.outputSchema]).toEqual(
      Array(2).fill({ type: "object", properties: {} }),
    );
    expect([repeat.outputSchema, countWords.configSchema]).toEqual([{}, undefined]);
  });

  test("a node runs on documents", () => {
    const decision = runNode(countWords, { text: "a b c", limit: 2, more: true });
    expect(decision.update("words")).toBe(2);
    const { goto, sends } = runNode(route, {}, new Context({ step: 3 }));
    expect(goto).toEqual(["next"]);
    expect(sends).toEqual([{ node: "other", input: { step: 3 }, extra: { timeout_ms: 50 } }]);
  });

  test("a configuration has a schema and is read", () => {
    expect(repeat.configSchema).toEqual({
      type: "object",
      properties: { times: { type: "integer", default: 1, description: "How often." } },
      additionalProperties: false,
    });
    const run = (context: Context) => runNode(repeat, { text: "a" }, context).update("text");
    expect(run(new Context())).toBe("a");
    expect(run(new Context().withConfig(null))).toBe("a");
    expect(run(new Context().withConfig({ times: 3 }))).toBe("aaa");
    const failure = thrown(() => run(new Context().withConfig({ time: 3 })));
    const expected = "the configuration of node `repeat` is invalid at `time`:";
    expect(failure.message.startsWith(expected)).toBe(true);
  });

  test("an invalid input is rejected with its path", () => {
    const failure = thrown(() => runNode(countWords, { text: "a", limit: "b" }));
    expect(failure.code).toBe("invalid");
    const expected = "the input of node `count_words` is invalid at `limit`:";
    expect(failure.message.startsWith(expected)).toBe(true);
  });

  test.each([
    ["a wrong type", { words: "x" }, "the updates of node `wrong` are invalid at `words`: "],
    ["a missing channel", {}, "; `npm run check` finds wrong types before a run"],
    ["an undeclared channel", { words: 1, more: 2 }, "write the channel `more`"],
    ["no object", [1], "are not an object"],
  ])("updates with %s are a defect of the node", (_, updates, message) => {
    const wrong = node("wrong", { output: z.object({ words: z.int() }) }, () => updates as never);
    const failure = thrown(() => runNode(wrong, {}));
    expect(failure.code).toBe("internal");
    expect(failure.message).toContain(message);
  });

  test.each([z.object({ amount: z.int() }), z.strictObject({ amount: z.int() })])(
    "a misspelled channel is named together with the missing one",
    (output) => {
      const wrong = node("wrong", { output }, () => ({ amonut: 1, note: undefined }) as never);
      const { message, details } = thrown(() => runNode(wrong, {}));
      expect(message).toContain("the updates of node `wrong` are invalid at `amount`: ");
      expect(message).toContain("; `output` of the node has no field `amonut`; `npm run check`");
      expect(details).toEqual({ path: "amount" });
    },
  );

  test("a type with further channels has no unknown ones", () => {
    const output = z.looseObject({ amount: z.int() });
    const wrong = node("wrong", { output }, () => ({ note: 1 }) as never);
    const { message } = thrown(() => runNode(wrong, {}));
    expect(message).toContain("are invalid at `amount`: ");
    expect(message).not.toContain("has no field");
  });

  test("a failure that a check of the updates throws keeps its message", () => {
    const refuse = (): boolean => {
      throw Failure.invalid("the amount exceeds the budget");
    };
    const output = z.object({ amount: z.int().refine(refuse) });
    const wrong = node("wrong", { output }, () => ({ amount: 1 }));
    const failure = thrown(() => runNode(wrong, {}));
    expect(failure.code).toBe("internal");
    expect(failure.message).toBe("the amount exceeds the budget");
  });

  test("an undefined field is not written", () => {
    const output = z.object({ a: z.int().optional(), b: z.int().optional() });
    const part = node("part", { output }, () => ({ a: undefined, b: 1 }));
    expect(runNode(part, {}).updates).toEqual([{ channel: "b", value: 1, overwrite: false }]);
  });

  test("only a written channel can be overwritten", () => {
    const make = (channel: string) =>
      node("n", { output: z.object({ a: z.int() }) }, () =>
        new Outcome({ a: 1 }).overwrite(channel),
      );
    expect(runNode(make("a"), {}).updates[0]?.overwrite).toBe(true);
    expect(thrown(() => runNode(make("b"), {})).message).toContain("overwrite channel `b`");
  });

  test("an outcome for the parent graph says so", () => {
    const up = node("up", {}, () => Outcome.nothing().forParent());
    expect(runNode(up, {}).extra).toEqual({ parent: true });
  });

  test("a promise is rejected with what to do", () => {
    const later = node("later", { output: z.unknown() }, async () => ({}));
    expect(thrown(() => runNode(later, {})).message).toContain("write it without `async`");
  });

  test("a name with other characters is rejected", () => {
    for (const name of ["", "a b", "ä", "a".repeat(65)]) {
      expect(thrown(() => node(name, {}, () => ({}))).message).toContain("`[a-zA-Z0-9_-]`");
    }
  });
});

describe("tools", () => {
  const Args = z.object({ number: z.int().describe("Any whole number.") });
  const strict = tool(
    "strict",
    { description: "Takes a number.", arguments: Args, readOnly: true },
    ({ number }) => ToolOutput.json(number),
  );
  const lenient = tool(
    "lenient",
    { description: "Takes anything.", arguments: unchecked(Args) },
    (args) => `${JSON.stringify(args.raw)} ${args.violations.length}`,
  );

  test("a tool has only declared hints", () => {
    expect(strict.hints).toEqual({ readOnly: true, idempotent: false });
    expect(lenient.hints).toEqual({ readOnly: false, idempotent: false });
  });

  test("only unchecked tools accept invalid arguments", () => {
    expect([strict.acceptsInvalid, lenient.acceptsInvalid]).toEqual([false, true]);
    expect(strict.argumentsSchema).toEqual(lenient.argumentsSchema);
    const context = new ToolContext({ violations: ["`number` is text"] });
    const wrong = { number: "x" };
    const failure = thrown(() => callTool(strict, wrong, context));
    expect(failure.code).toBe("invalid");
    expect(failure.message.startsWith("the arguments are invalid at `number`: ")).toBe(true);
    expect(callTool(lenient, wrong, context).textContent()).toBe('{"number":"x"} 1');
    expect(callTool(strict, { number: 7 }).structuredAs(z.int())).toBe(7);
  });

  test("fields of arguments have descriptions", () => {
    const { properties } = strict.argumentsSchema as { properties: Record<string, unknown> };
    expect(properties.number).toEqual({ type: "integer", description: "Any whole number." });
  });

  test("a text, data and an output are returned", () => {
    const returning = (value: string | object) => {
      return callTool(
        tool("t", { description: "" }, () => value),
        {},
      );
    };
    expect(returning("text").content).toEqual([{ type: "text", text: "text" }]);
    expect(returning({ a: 1 })).toMatchObject({ structured: { a: 1 }, isError: false });
    const output = ToolOutput.error("no").withPart("more").withUpdate("a", 1).withOverwrite("b", 2);
    expect(returning(output)).toBe(output);
    expect(output.textContent()).toBe("no\nmore");
    expect(output.updates.map(({ overwrite }) => overwrite)).toEqual([false, true]);
  });

  test("a document is structured or text of one or several parts", () => {
    const documents = [
      ToolOutput.json({ a: 1 }),
      new ToolOutput({ ...ToolOutput.text("one"), structured: 1 }),
      ToolOutput.text("[1,").withPart("2]"),
      ToolOutput.text('["a').withPart('b"]'),
    ].map((output) => output.document());
    expect(documents).toEqual([{ a: 1 }, 1, [1, 2], ["ab"]]);
    const page = ToolOutput.text("<html>").withPart("<body>");
    const { code, message } = thrown(() => page.document());
    expect(code).toBe("invalid");
    expect(message).toContain("the output of the tool is invalid");
  });

  test("an unavailable source is no tool", () => {
    const info = ToolInfo.missing("mcp:graph", Failure.unavailable("down"));
    expect(info.source()).toEqual({ source: "mcp:graph", failure: Failure.unavailable("down") });
    expect(new ToolInfo({ name: "a" }).source()).toBeUndefined();
    expect(new ToolInfo().withReference("date/parse").reference()).toBe("date/parse");
  });
});

describe("reducers", () => {
  const sum = reducer("sum", { doc: "Adds up.", value: z.int() }, (current = 0, updates) =>
    updates.reduce((total, update) => total + update, current),
  );

  test("a reducer runs on documents", () => {
    expect(sum.reduceText("4", ["1", "2"])).toBe("7");
    expect(sum.reduceText(undefined, ["1", "2"])).toBe("3");
    const failure = thrown(() => sum.reduceText(undefined, ["1", "null"]));
    expect(failure.message.startsWith("update 1 is invalid")).toBe(true);
  });
});

describe("plugins", () => {
  test("entries are sorted by their kind", () => {
    const made = plugin(route, countWords);
    expect(made.nodes.map(({ name }) => name)).toEqual(["route-it", "count_words"]);
    expect(made.tools).toEqual([]);
  });

  test("two entries of a kind cannot share a name", () => {
    expect(thrown(() => plugin(route, route)).message).toBe("the plugin has two nodes `route-it`");
  });
});

describe("contexts", () => {
  test("an error that is no record is shown as it is", () => {
    expect(new Context({ extra: { error: [1] } }).error()?.message).toBe("[1]");
    expect(new Context({ extra: { error: null } }).error()).toBeUndefined();
  });

  test("the run's context and the caller's state have types", () => {
    const Language = z.object({ language: z.string() });
    const failure = thrown(() => new Context({ context: {} }).runContext(Language));
    expect(failure.message).toContain("the run's context is invalid at `language`");
    expect(new ToolContext().state()).toEqual({});
    expect(thrown(() => new ToolContext().state(Language)).code).toBe("invalid");
  });
});
