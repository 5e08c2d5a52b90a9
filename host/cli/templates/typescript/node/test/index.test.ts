// Tests of the plugin, without a host. `wattle build` and then `npm test` run them.

import { expect, test } from "vitest";
import { runNode } from "wattle-plugin/testing";
import { greet } from "../src/index.ts";

test("a person is greeted by name", () => {
  expect(runNode(greet, { name: "Ada" }).update("greeting")).toBe("Hello, Ada!");
});
