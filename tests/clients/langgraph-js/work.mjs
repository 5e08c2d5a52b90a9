// Runs at work: several at once, cut off, and followed by typed events.

import assert from "node:assert/strict";

import { INPUT, all, asked, atWork, begun, dataOf, needs, refused, texts } from "./checks.mjs";

const { deepEqual, equal, ok } = assert;

/** A hang, not a measurement. */
const SOON_MS = 5_000;

/** What `agent` streams until it asks, and how many steps it tells until then. */
const SAID = ["Hello, world!"];
const STEPS = 5;

export async function batch(client) {
  const say = (text) => ({ assistantId: "factory_agent", input: { text } });
  const runs = await client.runs.createBatch([say("a"), say("b")]);
  equal(runs.length, 2);
  for (const { thread_id, run_id } of runs) await client.runs.join(thread_id, run_id);
  return runs;
}

export async function multitask(client) {
  const { thread_id, run_id: first } = await begun(client);
  const again = (multitaskStrategy) =>
    client.runs.create(thread_id, "stalling_agent", { input: {}, multitaskStrategy });
  await refused(again("reject"), 409);
  const { run_id: second } = await again("enqueue");
  equal((await client.runs.get(thread_id, second)).status, "pending");
  await client.runs.cancel(thread_id, second);
  const { run_id: third } = await again("interrupt");
  await atWork(client, thread_id, third);
  equal((await client.runs.get(thread_id, first)).status, "interrupted");
  const { run_id: fourth } = await again("rollback");
  await atWork(client, thread_id, fourth);
  await refused(client.runs.get(thread_id, third), 404);
  await client.runs.cancel(thread_id, fourth, true, "interrupt", { reason: "enough" });
  equal((await client.threads.get(thread_id)).status, "interrupted");
  await client.runs.delete(thread_id, fourth);
  return [first, second, third, fourth];
}

export async function several_are_cancelled(client) {
  needs("a cancel of several runs", "cancelMany" in client.runs);
  const { thread_id, run_id } = await begun(client);
  const waiting = await client.runs.create(thread_id, "stalling_agent", { input: {} });
  const runIds = [waiting.run_id];
  await client.runs.cancelMany({ threadId: thread_id, runIds, action: "interrupt" });
  equal((await client.runs.get(thread_id, waiting.run_id)).status, "interrupted");
  equal((await client.runs.get(thread_id, run_id)).status, "running");
  await client.runs.cancel(thread_id, run_id, true);
  return runIds;
}

export async function busy_loop(client) {
  const { thread_id } = await client.threads.create();
  let run_id;
  let sent;
  const stream = client.runs.stream(thread_id, "spinning_agent", {
    input: {},
    streamMode: "custom",
    onRunCreated: (run) => {
      run_id = run.run_id;
    },
  });
  for await (const { event } of stream) {
    if (event !== "custom") continue;
    sent = performance.now();
    await client.runs.cancel(thread_id, run_id);
  }
  const cancel_ms = Math.round(performance.now() - sent);
  ok(cancel_ms < SOON_MS, `${cancel_ms} ms`);
  equal((await client.runs.get(thread_id, run_id)).status, "interrupted");
  equal((await client.threads.get(thread_id)).status, "interrupted");
  return { cancel_ms };
}

export async function failure(client) {
  const { thread_id } = await client.threads.create();
  const few = { input: INPUT, config: { recursion_limit: 1 } };
  await assert.rejects(client.runs.wait(thread_id, "agent", few));
  const values = await client.runs.wait(thread_id, "agent", { ...few, raiseError: false });
  deepEqual(Object.keys(values.__error__).toSorted(), ["error", "message"]);
  const parts = await all(client.runs.stream(thread_id, "agent", few));
  equal(parts.at(-1).event, "error");
  return values;
}

export async function without_a_thread(client) {
  const parts = await all(
    client.runs.stream(null, "factory_agent", { input: { text: "hi" }, streamMode: "values" }),
  );
  equal(dataOf(parts, "values").at(-1).text, "hi echoed");
  const { run_id } = await client.runs.create(null, "factory_agent", { input: { text: "ho" } });
  await all(client.runs.joinStream(null, run_id, { lastEventId: "-1" }));
  return parts.map(({ event }) => event);
}

export async function elsewhere(client) {
  const { thread_id } = await asked(client);
  await client.runs.wait(thread_id, "agent", { command: { resume: "yes" } });
  const command = { update: { items: ["by command"] }, goto: "run_subgraph" };
  const values = await client.runs.wait(thread_id, "agent", { command });
  deepEqual(values.items, ["streamed", "tool", "asked", "sub", "by command", "sub"]);
  return values;
}

/** Resolves when the run itself, not a graph inside, is said to be so. */
function told(thread, wanted) {
  return new Promise((resolve) => {
    thread.onEvent(({ method, params }) => {
      const isRoot = method === "lifecycle" && params.namespace.length === 0;
      if (isRoot && params.data.event === wanted) resolve();
    });
  });
}

/** The typed events of a thread. */
function typedStream(client, options) {
  needs("typed events of a thread", "stream" in client.threads);
  return client.threads.stream(options);
}

async function answeredBy(client, transport) {
  const thread = typedStream(client, { assistantId: "agent", transport });
  try {
    const [asked, completed] = [told(thread, "interrupted"), told(thread, "completed")];
    await thread.run.start({ input: INPUT });
    await asked;
    equal(thread.interrupts.length, 1);
    const [{ interruptId: interrupt_id, namespace }] = thread.interrupts;
    await thread.input.respond({ interrupt_id, namespace, response: "yes" });
    await completed;
    const { values } = await client.threads.getState(thread.threadId);
    deepEqual(values.items, ["streamed", "tool", "asked", "sub"]);
    equal((await client.threads.get(thread.threadId)).status, "idle");
    return texts(values);
  } finally {
    await thread.close();
  }
}

export async function typed_events(client) {
  return answeredBy(client, "sse");
}

export async function typed_events_by_socket(client) {
  needs("typed events of a thread", "stream" in client.threads);
  return answeredBy(client, "websocket");
}

/** The texts of the messages of a graph itself. */
async function said(messages) {
  const texts = [];
  for await (const { namespace, text } of messages) {
    if (namespace.length === 0) texts.push(await text);
  }
  return texts;
}

/** How many items an extension has. The client takes the `payload` of an event for the item, which
 * graphs in the manner of Python do not write, so the items say nothing. */
async function counted(extension) {
  let count = 0;
  for await (const _ of extension) count += 1;
  return count;
}

/** The messages and the number of steps of a run that pauses or ends before they are asked for. */
async function shortRun(client, options, input) {
  const thread = typedStream(client, options);
  try {
    await thread.run.start({ input });
    const { messages, extensions } = thread;
    return await Promise.all([said(messages), counted(extensions.progress)]);
  } finally {
    await thread.close();
  }
}

async function shortRuns(client, transport) {
  const read = (assistantId, input) => shortRun(client, { assistantId, transport }, input);
  deepEqual(await read("agent", INPUT), [SAID, STEPS]);
  const [, steps] = await read("subgraph", { messages: [], note: "" });
  equal(steps, 2);
  const [texts] = await read("tools_agent", { messages: [{ role: "user", content: "search" }] });
  deepEqual(texts, ["done."]);
  return { steps, texts };
}

export async function short_runs(client) {
  return shortRuns(client, "sse");
}

export async function short_runs_by_socket(client) {
  needs("typed events of a thread", "stream" in client.threads);
  return shortRuns(client, "websocket");
}

export async function tool_calls(client) {
  const thread = typedStream(client, { assistantId: "tools_agent" });
  try {
    const seen = (async () => {
      for await (const call of thread.toolCalls) return call;
    })();
    await thread.run.start({ input: { messages: [{ role: "user", content: "search for v3" }] } });
    const { name, input } = await seen;
    deepEqual([name, input], ["search", { query: "v3" }]);
    return { name, input };
  } finally {
    await thread.close();
  }
}

export async function all_runs_of_a_thread(client) {
  const { thread_id, run_id } = await begun(client);
  for await (const { event, data } of client.threads.joinStream(thread_id, { lastEventId: "-1" })) {
    if (event !== "metadata") continue;
    equal(data.run_id, run_id);
    break;
  }
  await client.runs.cancel(thread_id, run_id, true);
  return { run_id };
}
