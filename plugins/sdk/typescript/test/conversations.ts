// Conversations for tests: threads, and hosts with them.

import { Request, runs } from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import { thrown } from "./thrown.ts";

export const HI = { id: "u", role: "user", content: "hi" };
export const HELLO = { id: "a", role: "assistant", content: "hello" };

export type Thread = ConstructorParameters<typeof runs.Thread>[0];

export const thread = (
  threadId: string,
  status: string,
  messages: unknown,
  graph = "notes",
): Thread => {
  return { threadId, graph, status, state: { messages } as runs.Thread["state"] };
};

export const hostWith = (...threads: Thread[]) => {
  return threads.reduce((host, thread) => host.thread(thread), new FakeHost());
};

export const post = (body: unknown) =>
  new Request({ method: "POST" }).withBody(JSON.stringify(body));

/** Returns status and text of a refusal. */
export const refused = (work: () => unknown) => {
  const failure = thrown(work);
  return [failure.status(), failure.message];
};

/** A conversation of a graph with the question `q` about a tool call. */
export const asking = (threadId: string, graph: string, status: string): Thread => {
  const interrupts = [new runs.Interrupt("q", "tools", { tool: "pay" })];
  return { ...thread(threadId, status, [HI], graph), interrupts };
};
