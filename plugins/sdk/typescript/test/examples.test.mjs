import { describe, expect, test } from "vitest";
import { Failure, llm } from "wattle-plugin";
import { FakeHost, runNode } from "wattle-plugin/testing";
import { commentsIn, examplesIn } from "../scripts/examples.mjs";

const modules = import.meta.glob("../generated/*.ts");

describe("examples of the documentation", () => {
  test.each(Object.keys(modules))("%s runs", async (file) => {
    await modules[file]();
  });

  test("examples are found in comments and pages", () => {
    const source =
      'const a = 1;\n/**\n * Text.\n *\n * ```ts\n * f("a");\n * ```\n */\nfunction f() {}\n';
    expect(examplesIn(commentsIn(source))).toEqual(['f("a");\n']);
    expect(examplesIn("```json\n{}\n```\n\n```ts\na\n```\n")).toEqual(["a\n"]);
    const files = Object.keys(modules);
    expect(files).toContain("../generated/README-1.ts");
    expect(files).toContain("../generated/sql-database-1.ts");
  });
});

describe("the agent of a page", () => {
  const load = modules["../generated/agents-1.ts"];

  /** Runs a node, and adds the messages that it writes. Returns the nodes that run next. */
  function turn(host, node, messages) {
    const decision = host.run(() => runNode(node, { messages }));
    messages.push(...decision.update("messages"));
    return decision.goto;
  }

  test("calls tools until the completion has no call", async () => {
    const { askModel, callTools } = await load();
    const names = ["refund", "find_order", "lost"];
    const parts = names.map((name) => llm.Completion.ofToolCall(name, name, {}).parts[0]);
    const completions = [new llm.Completion({ parts }), llm.Completion.ofText("It is on its way.")];
    const host = new FakeHost()
      .llm(() => completions.shift())
      .answer(false)
      .tool("refund", () => "refunded")
      .tool("find_order", () => "order 7")
      .tool("lost", () => {
        throw new Failure("denied", "add a line to wattle.toml");
      });
    const messages = [{ role: "user", content: "Where is my order?" }];
    expect(turn(host, askModel, messages)).toEqual(["call_tools"]);
    expect(host.llmRequests()[0].tools.map(({ name }) => name)).toEqual(names);
    turn(host, callTools, messages);
    expect(turn(host, askModel, messages)).toEqual([]);
    expect(host.questions()[0].payload.tool).toBe("refund");
    expect(host.toolCalls().map(({ callId }) => callId)).toEqual(["find_order", "lost"]);
    expect(messages.slice(2).map(({ status, content }) => [status, content])).toEqual([
      ["error", "a person refused the call"],
      ["success", "order 7"],
      ["error", "the call failed: denied"],
      [undefined, "It is on its way."],
    ]);
  });

  test("closes the calls of a cancelled run", async () => {
    const { askModel } = await load();
    const host = new FakeHost().llm(() => llm.Completion.ofText("Hello."));
    const calls = [{ id: "c", name: "refund", arguments: {} }];
    const asked = { role: "assistant", content: "", tool_calls: calls };
    const messages = [asked, { role: "user", content: "Hello" }];
    turn(host, askModel, messages);
    expect(messages[2]).toMatchObject({ tool_call_id: "c", status: "error" });
    expect(host.llmRequests()[0].extra.history.append).toEqual([messages[2]]);
  });
});
