// The common endpoints of conversations.

import { describe, expect, test } from "vitest";
import { chat, Failure, plugin, type runs, web } from "wattle-plugin";
import type { FakeHost } from "wattle-plugin/testing";
import { describeRoutes, openapi } from "../src/web/openapi.ts";
import { asking, hostWith, post, thread } from "./conversations.ts";

const TEXTS = chat.ENGLISH;

describe("endpoints", () => {
  const all = chat.endpoints(new chat.Chat("notes"), "/api");

  /** A host with an idle conversation and with one that has a pending question. */
  const hostOf = (outcome: runs.Outcome) => {
    return hostWith(thread("idle", "idle", []), asking("waiting", "notes", "interrupted")).runEnds(
      (run) => ({ run, outcome }),
    );
  };

  /** Returns status and body of a response, which no cache stores. */
  const call = (it: FakeHost, name: keyof chat.Endpoints, id: string, body: unknown) => {
    const response = it.run(() => all[name].handle(post(body).withParam("id", id)));
    expect(response.headers).toContainEqual(["cache-control", "no-store"]);
    return [response.status, response.body.type === "bytes" ? response.jsonBody() : undefined];
  };

  test("endpoints are below the path and have a summary", () => {
    const entries = Object.values(all);
    expect(entries.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /api/chat",
      "POST /api/chat/stream",
      "GET /api/threads",
      "GET /api/threads/{id}",
      "PATCH /api/threads/{id}",
      "DELETE /api/threads/{id}",
      "GET /api/threads/{id}/stream",
      "POST /api/threads/{id}/cancel",
      "POST /api/threads/{id}/answers",
    ]);
    for (const { operation } of describeRoutes(plugin(...entries).handlers)) {
      expect(operation).toMatchObject({
        summary: expect.stringMatching(/\.$/),
        responses: { default: expect.anything() },
      });
    }
  });

  test("documents have the schemas of the Rust SDK", () => {
    const document = openapi("notes", Object.values(all)) as {
      components: { schemas: Record<string, { required?: string[] }> };
    };
    const { schemas } = document.components;
    const names = Object.entries(schemas).map(([name, { required }]) => [name, required]);
    expect(Object.fromEntries(names)).toEqual({
      AnswerRequest: ["id", "answer"],
      ChatError: ["error"],
      ChatRequest: undefined,
      ErrorDocument: ["error"],
      Question: ["id", "payload"],
      Reply: ["threadId", "reply", "steps"],
      Role: undefined,
      Step: undefined,
      ThreadDocument: ["threadId", "status", "messages"],
      ThreadEntry: ["threadId", "title", "status", "createdMs", "updatedMs"],
      ThreadList: ["threads", "next"],
      TitleRequest: ["title"],
      ToolCall: ["id", "name", "arguments"],
      UiMessage: ["id", "role", "parts"],
      UiPart: ["type"],
      UiState: undefined,
      Waiting: ["threadId", "reply", "questions", "steps"],
    });
    expect(schemas.ChatRequest).toEqual({
      type: "object",
      description: "A message, or the request to reply to the last message again (`retry`).",
      properties: {
        threadId: {
          type: ["string", "null"],
          description: "Conversation of the message; a new one without it.",
          default: null,
        },
        message: { type: "string", default: "" },
        retry: {
          type: "boolean",
          description:
            "Requests a reply to the last message after a failed run, in place of a new message.",
          default: false,
        },
      },
    });
  });

  const decision = { id: "q", answer: { decision: "approve" } };

  test.each<[keyof chat.Endpoints, string, unknown, number]>([
    ["send", "", { message: "hi" }, 200],
    ["stream", "", { message: "hi" }, 200],
    ["list", "", null, 200],
    ["show", "idle", null, 200],
    ["rename", "idle", { title: "Tea" }, 204],
    ["delete", "idle", null, 204],
    ["join", "idle", null, 204],
    ["cancel", "idle", null, 200],
    ["answer", "waiting", decision, 200],
  ])("the endpoint `%s` does its work", (name, id, body, status) => {
    expect(call(hostOf({ type: "completed" }), name, id, body)[0]).toBe(status);
  });

  test("refusals and failed runs have a text for users", () => {
    const it = hostOf({ type: "failed", failure: Failure.timeout("late") });
    const body = { title: "Tea", message: "hi", id: "q", answer: true };
    const ofThread = ["show", "rename", "delete", "join", "cancel", "answer"] as const;
    for (const name of ofThread) {
      expect(call(it, name, "nobody", body)).toEqual([404, { error: TEXTS.missing }]);
    }
    for (const name of ["send", "answer"] as const) {
      const [status, document] = call(it, name, "waiting", body);
      expect([status, document]).toMatchObject([web.status.BAD_GATEWAY, { error: TEXTS.failed }]);
    }
  });
});
