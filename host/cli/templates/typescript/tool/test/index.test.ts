// Tests of the plugin, without a host. `wattle build` and then `npm test` run them.

import { expect, test } from "vitest";
import { callTool } from "wattle-plugin/testing";
import { countWords } from "../src/index.ts";

test("words are counted", () => {
  expect(callTool(countWords, { text: " two words " }).structured).toEqual({ words: 2 });
});
