// The channels and the conversation that a node reads.

import { describe, expect, test } from "vitest";
import { type ChannelRef, Context, node, plugin } from "wattle-plugin";
import { runNode } from "wattle-plugin/testing";
import * as z from "zod";
import { exportNodes } from "../src/guest/node.ts";
import { thrown } from "./thrown.ts";

const TALK: ChannelRef = { config: "messages", default: "talk" };

/** Returns which part of the conversation its input has. */
const converse = node(
  "converse",
  { output: z.unknown(), reads: { channels: [TALK], conversation: TALK } },
  (_input, context) => ({ part: context.conversation() }),
);

describe("the conversation of a node", () => {
  const input = { talk: [1, 2], other: [1], title: "a" };
  const part = (context: Context) => runNode(converse, input, context).update("part");

  test("the host gets the declaration", () => {
    const title = node(
      "title",
      { config: z.object({}), reads: { conversation: { channel: "title" } } },
      () => ({}),
    );
    const whole = node("whole", { input: z.unknown() }, () => ({}));
    const extras = exportNodes(plugin(converse, title, whole))
      .describe()
      .map(({ extra }) => extra.map(([key, text]) => [key, JSON.parse(text)]));
    expect(extras).toEqual([
      [["reads", { channels: [TALK], conversation: TALK }]],
      [
        ["config-schema", { type: "object", properties: {} }],
        ["reads", { conversation: { channel: "title" } }],
      ],
      [],
    ]);
  });

  test("a node that a test runs has all messages in its input", () => {
    expect(part(new Context())).toEqual({ channel: "talk", from: 0, length: 2 });
    const later = { channel: "talk", from: 4, length: 6 };
    expect(part(new Context().withConversation(later))).toEqual(later);
  });

  test.each([
    [null, "talk", 2],
    ["other", "other", 1],
    ["title", "title", 0],
    ["missing", "missing", 0],
  ])("the configuration %j names it", (messages, channel, length) => {
    const context = new Context().withConfig({ messages });
    expect(part(context)).toEqual({ channel, from: 0, length });
  });

  test("a node without one names the causes", () => {
    const failures = [
      thrown(() => converse.run({})),
      // The configuration names several channels.
      thrown(() => part(new Context().withConfig({ messages: ["talk", "other"] }))),
    ];
    for (const { code, message } of failures) {
      expect(code).toBe("unsupported");
      for (const cause of ["`converse`", "update Wattle", "`reads`"]) {
        expect(message).toContain(cause);
      }
    }
  });

  test.each([
    null,
    [],
    { channel: 1, from: 0, length: 0 },
    { channel: "talk", from: -1, length: 0 },
    { channel: "talk", from: 0, length: 0.5 },
  ])("%j is none", (conversation) => {
    const context = new Context({ extra: { conversation } });
    expect(thrown(() => context.conversation()).code).toBe("invalid");
  });
});
