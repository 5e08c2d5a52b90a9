// Tests of the plugin, without a host. `wattle build` and then `npm test` run them.

import { expect, test } from "vitest";
import { FakeHost, runNode } from "wattle-plugin/testing";
import { approve, greet } from "../src/index.ts";

test("a person is greeted by name", () => {
  expect(runNode(greet, { name: "Ada" }).update("greeting")).toBe("Hello, Ada!");
});

test("the answer decides", () => {
  const host = new FakeHost().answer(false);
  const decision = host.run(() => runNode(approve, { greeting: "Hello, Ada!" }));
  expect(decision.update("approved")).toBe(false);
});
