// Cases and grants, as the playground makes them of what the host says.
import { expect, test } from "vitest";
import { grantIn, grantText } from "../../src/part/grant.ts";
import { type CaseRun, caseLine, expectationsOf, readExpectations } from "../../src/play/case.ts";

const thread = { state: {}, interrupts: [], failure: null };

function run(values: Partial<CaseRun>): CaseRun {
  return { graph: "main", input: {}, status: "completed", thread, ...values };
}

test("a completed run is expected to write what is not its input", () => {
  const state = { given: 1, "a/b~c": [2], long: "x".repeat(3_000), odd: { $date: "0d" } };
  const made = run({ input: { given: 1 }, thread: { ...thread, state } });
  expect(expectationsOf(made)).toEqual({ "/status": "completed", "/state/a~1b~0c": [2] });
  const line = caseLine("a-1", made, expectationsOf(made));
  expect(line.endsWith("}\n")).toBe(true);
  expect(JSON.parse(line)).toEqual({
    name: "a-1",
    graph: "main",
    input: { given: 1 },
    expect: { "/status": "completed", "/state/a~1b~0c": [2] },
  });
});

test("the case of a run with a context has it, too", () => {
  const status = { "/status": "completed" };
  const line = caseLine("a-1", run({ context: { language: "en" } }), status);
  expect(JSON.parse(line)).toMatchObject({ context: { language: "en" } });
  expect(JSON.parse(caseLine("a-1", run({}), status))).not.toHaveProperty("context");
});

test("a run that asks or fails is expected to do so again", () => {
  const interrupt = { id: "i", node: "n", payload: { q: "sure?" }, asked_ms: 1 };
  const asks = run({ status: "interrupted", thread: { ...thread, interrupts: [interrupt] } });
  expect(expectationsOf(asks)).toEqual({ "/status": "interrupted", "/interrupt": { q: "sure?" } });
  const failure = { code: "limit", message: "too much" };
  const fails = run({ status: "failed", thread: { ...thread, failure, state: { n: 1 } } });
  expect(expectationsOf(fails)).toEqual({ "/status": "failed", "/failure/code": "limit" });
});

test("expectations are an object with pointers", () => {
  expect(readExpectations({ "/status": "failed" })).toEqual({ "/status": "failed" });
  for (const value of [null, [], "x", {}, { status: 1 }]) {
    expect(readExpectations(value)).toBeUndefined();
  }
});

test("the line to add is found in the message of a missing grant", () => {
  const http = `http = [{ host = "a.example", methods = ["GET"] }]`;
  const text = `plugin \`p\` is not allowed to send \`GET\` to \`https://a.example\`; add \`${http}\` under \`[grants."shop/p"]\` in wattle.toml`;
  const grant = grantIn(text);
  expect(grant && grantText(grant)).toBe(`# wattle.toml\n[grants."shop/p"]\n${http}`);
  const two = 'add `tools = ["a/x"]` or `tools = ["b/x"]` under `[grants.p]` in wattle.toml';
  const either = grantIn(two);
  const choice = '# wattle.toml\n[grants.p]\ntools = ["a/x"]\n# or: tools = ["b/x"]';
  expect(either && grantText(either)).toBe(choice);
  expect(grantIn("the tool name `x` is ambiguous: `a/x` and `b/x` have it")).toBeUndefined();
  expect(grantIn("no table for `llm = [1]`")).toBeUndefined();
});

test("the files that lack a line are found in the message of a denied call", () => {
  const text = (places: string) => {
    const found = grantIn(`plugin \`p\` may not use \`r\`; add \`llm = ["r"]\` ${places}`);
    return found && grantText(found);
  };
  const request = '# app.toml\n[needs]\nllm = ["r"]';
  const grant = '# wattle.toml\n[grants.p]\nllm = ["r"]';
  expect(text("under `[needs]` in app.toml, which does not request it")).toBe(request);
  const both = "both under `[needs]` in app.toml and under `[grants.p]` in wattle.toml";
  expect(text(both)).toBe(`${request}\n\n${grant}`);
  expect(text("under `[needs.plugins.p]` in app.toml, which does not request it")).toBe(
    '# app.toml\n[needs.plugins.p]\nllm = ["r"]',
  );
  const own = '# the plugin\'s own manifest\nllm = ["r"]';
  expect(text("in the plugin's own manifest, which does not request it")).toBe(own);
});
