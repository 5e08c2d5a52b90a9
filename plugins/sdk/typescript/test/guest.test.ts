// The exports of a component, as an engine calls them.

import { describe, expect, test } from "vitest";
import {
  Context,
  Failure,
  handler,
  node,
  Outcome,
  plugin,
  Response,
  reducer,
  ToolOutput,
  tool,
} from "wattle-plugin";
import * as z from "zod";
import { exportNodes } from "../src/guest/node.ts";
import { exportReducers } from "../src/guest/reducer.ts";
import { exportTools } from "../src/guest/tool.ts";
import { exportHandlers } from "../src/guest/web.ts";

const made = plugin(
  node(
    "step",
    {
      doc: "Goes on.",
      input: z.object({ text: z.string() }),
      output: z.object({ n: z.int() }),
      config: z.object({ times: z.int().default(1) }),
    },
    ({ text }, context) => {
      if (text === "fail") throw Failure.unavailable("down", { details: { a: 1 } });
      if (text === "throw") throw new TypeError("defect");
      return new Outcome({ n: context.step })
        .goto("next")
        .send("other", { tenant: context.tenant });
    },
  ),
  tool("look", { description: "Looks.", readOnly: true }, (_args, context) =>
    ToolOutput.text(context.callId).withUpdate("n", 1),
  ),
  reducer("last", { value: z.int() }, (_current, updates) => updates.at(-1) ?? 0),
  handler("POST", "/runs/{id}", { body: z.object({}) }, (request) => {
    request.json();
    const threadId = request.param("id");
    const cancel = { cancelOnDisconnectMs: 5, nodes: ["a"], after: 3 };
    return Response.handOff({ threadId, format: { custom: "chat" }, ...cancel });
  }),
);

/** The fields of a context in the contract, with the missing options of both engines. */
const task = (fields: object) => ({
  ...new Context({ node: "step", step: 3 }),
  context: "null",
  extra: [] as Array<[string, string]>,
  ...fields,
});

const raised = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("the export node", () => {
  const nodes = exportNodes(made);

  test("nodes are described with their configuration", () => {
    const [info] = nodes.describe();
    expect(info).toMatchObject({ name: "step", doc: "Goes on." });
    expect(JSON.parse(info?.inputSchema ?? "")).toMatchObject({ required: ["text"] });
    expect(info?.extra.map(([key]) => key)).toEqual(["config-schema"]);
  });

  test.each([null, undefined])("a node runs without the option %s", (tenant) => {
    expect(nodes.run(task({ tenant }), '{"text":"a"}')).toEqual({
      updates: [{ channel: "n", value: "3", overwrite: false }],
      goto: ["next"],
      sends: [{ node: "other", input: "{}", extra: [] }],
      extra: [],
    });
  });

  test("a failure has the form of the contract", () => {
    expect(raised(() => nodes.run(task({}), '{"text":"fail"}'))).toEqual({
      code: "unavailable",
      message: "down",
      retryable: true,
      details: '{"a":1}',
    });
    const defect = raised(() => nodes.run(task({}), '{"text":"throw"}'));
    expect(defect).toMatchObject({ code: "internal", message: "TypeError: defect" });
    expect(raised(() => nodes.run(task({ node: "none" }), "{}"))).toMatchObject({
      code: "not-found",
      details: null,
    });
  });
});

describe("the other exports", () => {
  test("tools are listed and called", () => {
    const tools = exportTools(made);
    expect(tools.list()).toEqual([
      {
        name: "look",
        description: "Looks.",
        argumentsSchema: '{"type":"object","properties":{}}',
        acceptsInvalid: false,
        extra: [["hints", '{"read_only":true,"idempotent":false}']],
      },
    ]);
    const context = { tool: "look", callId: "c", violations: [], extra: [] };
    expect(tools.call(context, "{}")).toEqual({
      content: [{ tag: "text", val: "c" }],
      structured: null,
      isError: false,
      updates: [{ channel: "n", value: "1", overwrite: false }],
      extra: [],
    });
    expect(raised(() => tools.call({ ...context, tool: "none" }, "{}"))).toMatchObject({
      code: "not-found",
    });
  });

  test("reducers combine values", () => {
    const reducers = exportReducers(made);
    expect(reducers.reducers()).toEqual([{ name: "last", doc: "", extra: [] }]);
    expect(reducers.reduce("last", null, ["1", "2"])).toBe("2");
    expect(raised(() => reducers.reduce("none", undefined, []))).toMatchObject({
      code: "not-found",
    });
  });

  test("handlers respond, also to requests that they refuse", () => {
    const web = exportHandlers(made);
    expect(web.routes()[0]).toMatchObject({ method: "POST", path: "/runs/{id}" });
    const request = {
      method: "POST",
      path: "/runs/t",
      route: "/runs/{id}",
      params: [["id", "t"]] as Array<[string, string]>,
      query: [],
      headers: [],
      body: new TextEncoder().encode("{}"),
      extra: [],
    };
    expect(web.handle(request)).toEqual({
      status: 200,
      headers: [],
      body: {
        tag: "hand-off",
        val: {
          threadId: "t",
          runId: null,
          format: { tag: "custom", val: "chat" },
          after: 3,
          extra: [
            ["on_disconnect", '"cancel"'],
            ["grace_ms", "5"],
            ["nodes", '["a"]'],
          ],
        },
      },
    });
    expect(web.handle({ ...request, body: new Uint8Array() }).status).toBe(400);
    expect(raised(() => web.handle({ ...request, route: "/" }))).toMatchObject({
      code: "not-found",
    });
  });
});
