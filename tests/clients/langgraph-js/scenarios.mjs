// What a client does with the graphs of the app `reference`, one function a scenario.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { INPUT, MODES, QUESTION, all, asked, dataOf, refused, texts } from "./checks.mjs";

const { deepEqual, equal, ok } = assert;

export async function threads({ threads }) {
  const mark = randomUUID();
  const { thread_id, status } = await threads.create({ metadata: { mark } });
  equal(status, "idle");
  await threads.update(thread_id, { metadata: { kind: "second" } });
  deepEqual((await threads.get(thread_id)).metadata, { mark, kind: "second" });
  const found = await threads.search({ metadata: { mark } });
  deepEqual(found.map((thread) => thread.thread_id), [thread_id]);
  await refused(threads.create({ threadId: thread_id }), 409);
  await refused(threads.get("no-such-thread"), 422);
  await threads.delete(thread_id);
  await refused(threads.get(thread_id), 404);
  return { thread_id };
}

export async function wait(client) {
  const { thread_id, values } = await asked(client);
  deepEqual(values.items, ["streamed", "tool"]);
  deepEqual(texts(values), [["ai", "Hello, world!"], ["ai", ""], ["tool", "result for 'v3'"]]);
  equal(values.__interrupt__[0].value, QUESTION);
  const [run] = await client.runs.list(thread_id);
  equal(run.status, "success");
  equal((await client.threads.get(thread_id)).status, "interrupted");
  const echoed = await client.runs.wait(null, "factory_agent", { input: { text: "hi" } });
  equal(echoed.text, "hi echoed");
  return values;
}

export async function stream(client) {
  const { thread_id } = await client.threads.create();
  const parts = await all(
    client.runs.stream(thread_id, "agent", { input: INPUT, streamMode: MODES }),
  );
  equal(parts[0].event, "metadata");
  deepEqual(dataOf(parts, "error"), []);
  const steps = dataOf(parts, "custom").map(({ step, phase }) => `${step} ${phase}`);
  deepEqual(steps.slice(0, 2), ["stream_message start", "stream_message end"]);
  equal(steps.at(-1), "ask_human start");
  const nodes = dataOf(parts, "updates").map((update) => Object.keys(update)[0]);
  deepEqual(nodes, ["stream_message", "call_tool", "__interrupt__"]);
  deepEqual(dataOf(parts, "values").at(-1).items, ["streamed", "tool"]);
  const pieces = dataOf(parts, "messages").filter(([message]) => message.id === "ai-msg-1");
  ok(pieces.length > 1);
  equal(pieces.map(([message]) => message.content).join(""), "Hello, world!");
  return parts.map((part) => part.event);
}

export async function answer(client) {
  const { thread_id } = await asked(client);
  const parts = await all(
    client.runs.stream(thread_id, "agent", {
      command: { resume: "yes" },
      streamMode: MODES,
      streamSubgraphs: true,
    }),
  );
  const values = dataOf(parts, "values").at(-1);
  deepEqual(values.items, ["streamed", "tool", "asked", "sub"]);
  deepEqual(texts(values).slice(3), [["ai", "Human said: yes"], ["ai", "from subgraph"]]);
  ok(parts.some((part) => part.event.startsWith("updates|run_subgraph:")));
  equal((await client.threads.get(thread_id)).status, "idle");
  return values;
}

export async function states(client) {
  const { thread_id } = await asked(client);
  const state = await client.threads.getState(thread_id);
  deepEqual(state.next, ["ask_human"]);
  equal(state.tasks[0].interrupts[0].value, QUESTION);
  const history = await client.threads.getHistory(thread_id);
  deepEqual(history.slice(0, 2).map(({ next }) => next), [["ask_human"], ["call_tool"]]);
  deepEqual(history[0].parent_checkpoint, history[1].checkpoint);
  const past = await client.threads.getState(thread_id, history[1].checkpoint);
  deepEqual(past.values, history[1].values);
  await client.threads.updateState(thread_id, {
    values: { value: "edited" },
    asNode: "stream_message",
  });
  const edited = await client.threads.getState(thread_id);
  deepEqual([edited.values.value, edited.next], ["edited", ["call_tool"]]);
  return history.map(({ next }) => next);
}

export async function rejoin(client) {
  const { thread_id } = await client.threads.create();
  let run_id;
  const live = await all(
    client.runs.stream(thread_id, "agent", {
      input: INPUT,
      streamMode: MODES,
      streamResumable: true,
      onRunCreated: (run) => {
        run_id = run.run_id;
      },
    }),
  );
  const joined = (lastEventId) =>
    all(client.runs.joinStream(thread_id, run_id, { lastEventId, streamMode: MODES }));
  deepEqual(await joined("-1"), live);
  deepEqual(await joined(live[2].id), live.slice(3));
  return { events: live.length };
}

export async function cancel(client) {
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "stalling_agent", { input: {} });
  await client.runs.cancel(thread_id, run_id, true);
  const run = await client.runs.get(thread_id, run_id);
  equal(run.status, "interrupted");
  equal((await client.threads.get(thread_id)).status, "interrupted");
  return run;
}
