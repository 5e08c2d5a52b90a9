// A gateway with a model of a few answers: `node gateway.mjs <key>`.
//
// It prints its port and ends with its standard input, so that it never outlives who started it.
// Requests without the key are refused.

import { LLMock } from "@copilotkit/aimock";

const [key] = process.argv.slice(2);
const usage = { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 };

/** What a request must have for an answer: instructions as well, wherever its format has them. */
function when(userMessage, more) {
  return { userMessage, systemMessage: "be brief", ...more };
}

const gateway = new LLMock({
  host: "127.0.0.1",
  port: 0,
  auth: { apiKeys: [key] },
  // Characters of a piece.
  chunkSize: 8,
  logLevel: "warn",
});
gateway.addFixtures([
  {
    match: when("greet me"),
    response: { content: "Thank you, I have read your message: greet me", usage },
  },
  {
    match: when("call add", { toolName: "add", hasToolResult: false }),
    // As text: only fixtures of files may have documents here.
    response: { toolCalls: [{ id: "call_1", name: "add", arguments: '{"a":1,"b":2}' }], usage },
  },
  {
    match: when("call add", { toolResultContains: "three" }),
    response: { content: "The tools answered: three", usage },
  },
]);
await gateway.start();
console.log(`port ${new URL(gateway.url).port}`);
process.stdin.on("end", () => process.exit(0)).resume();
