// Talks to a graph as the official client does, unmodified, and says what it has then:
//
//     node agent.mjs http://127.0.0.1:7700/api/v1/apps/<app>/graphs/<graph>/ag-ui <thread> '<steps>'
//
// Each step is a run: `say` is a message of the user, `answer` the answer to every pending
// interrupt, and `cancel` dismisses them. The answer is one line of JSON: `messages`, `state`, the
// `outcomes` of the runs, and whether each run has the ids of its request (`echoes`).

import { randomUUID } from "node:crypto";
import { HttpAgent } from "@ag-ui/client";

const [url, threadId, steps] = process.argv.slice(2);
const agent = new HttpAgent({ url, threadId });
const outcomes = [];
const echoes = [];
agent.subscribe({
  onRunStartedEvent: ({ event, input }) => {
    echoes.push(event.threadId === input.threadId && event.runId === input.runId);
  },
  onRunFinishedEvent: ({ event }) => {
    outcomes.push(event.outcome);
  },
});

function entry({ id }, { answer, cancel }) {
  if (cancel) return { interruptId: id, status: "cancelled" };
  return { interruptId: id, status: "resolved", payload: answer };
}

for (const step of JSON.parse(steps)) {
  if (step.say !== undefined) {
    agent.addMessage({ id: randomUUID(), role: "user", content: step.say });
  }
  const isReply = step.cancel || step.answer !== undefined;
  const resume = agent.pendingInterrupts.map((interrupt) => entry(interrupt, step));
  await agent.runAgent(isReply ? { resume } : {});
}
const { messages, state } = agent;
console.log(JSON.stringify({ messages, state, outcomes, echoes }));
