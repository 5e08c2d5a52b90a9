// What a client does with the graphs of the app `reference`, one function a scenario.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { INPUT, MODES, QUESTION, all, asked, dataOf, refused, texts } from "./checks.mjs";

const { deepEqual, equal, ok } = assert;

/** The nodes of `agent` that run until it asks. */
const NODES = ["stream_message", "call_tool", "ask_human"];

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
  // `messages` and `messages-tuple` have events of different names.
  const streamMode = [...MODES, "messages", "events", "tasks", "checkpoints", "debug"];
  const parts = await all(client.runs.stream(thread_id, "agent", { input: INPUT, streamMode }));
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
  checkMessages(parts);
  checkEvents(dataOf(parts, "events"), parts[0].data.run_id);
  checkTasks(dataOf(parts, "tasks"));
  checkCheckpoints(parts);
  checkDebug(parts);
  return parts.map((part) => part.event);
}

/** Mode `messages`. */
function checkMessages(parts) {
  const partial = dataOf(parts, "messages/partial").map(([message]) => message.content);
  deepEqual(partial, ["Hello,", "Hello, world!"]);
  const messages = dataOf(parts, "messages/complete").flat();
  const said = [["ai", "Hello, world!"], ["ai", ""], ["tool", "result for 'v3'"]];
  deepEqual(texts({ messages }), said);
  const metadata = Object.assign({}, ...dataOf(parts, "messages/metadata"));
  const nodes = messages.map(({ id }) => metadata[id].metadata.langgraph_node);
  deepEqual(nodes, ["stream_message", "call_tool", "call_tool"]);
}

/** Mode `events`. */
function checkEvents(events, run_id) {
  const fields = ["data", "event", "metadata", "name", "parent_ids", "run_id", "tags"];
  for (const event of events) deepEqual(Object.keys(event).toSorted(), fields);
  const named = (kind) => events.filter(({ event }) => event === kind);
  const [begun, ended] = [named("on_chain_start"), named("on_chain_end")];
  deepEqual(begun.map(({ name }) => name), ["agent", ...NODES]);
  deepEqual(ended.map(({ name }) => name), [...NODES.slice(0, 2), "agent"]);
  deepEqual(ended.map((event) => event.run_id), [1, 2, 0].map((index) => begun[index].run_id));
  deepEqual([begun[0].run_id, begun[0].parent_ids], [run_id, []]);
  deepEqual(begun.slice(1).map(({ parent_ids }) => parent_ids), NODES.map(() => [run_id]));
  const chunks = named("on_chain_stream").map(({ data }) => data.chunk.items);
  deepEqual(chunks, [["streamed"], ["tool"]]);
  deepEqual(ended.at(-1).data.output.items, ["streamed", "tool"]);
  const pieces = named("on_chat_model_stream").map(({ data }) => data.chunk.content);
  deepEqual(pieces, ["Hello,", " world!"]);
  const [[start], [end]] = [named("on_chat_model_start"), named("on_chat_model_end")];
  deepEqual([end.run_id, end.data.output.content], [start.run_id, "Hello, world!"]);
  const steps = named("on_custom_event").map(({ data }) => `${data.step} ${data.phase}`);
  deepEqual([steps[0], steps.at(-1)], ["stream_message start", "ask_human start"]);
}

/** Mode `tasks`: a start and a result of each task. */
function checkTasks(tasks) {
  const [begun, ended] = ["input", "result"].map((field) => tasks.filter((it) => field in it));
  equal(tasks.length, begun.length + ended.length);
  deepEqual(begun.map(({ name }) => name), NODES);
  for (const { triggers } of begun) equal(triggers.length, 1);
  deepEqual(begun.map(({ input }) => input.items), [[], ["streamed"], ["streamed", "tool"]]);
  deepEqual(ended.map(({ id }) => id), begun.map(({ id }) => id));
  deepEqual(ended.map(({ error }) => error), [null, null, null]);
  deepEqual(ended.map(({ result }) => result.items), [["streamed"], ["tool"], undefined]);
  const questions = ended.map(({ interrupts }) => interrupts.map(({ value }) => value));
  deepEqual(questions, [[], [], [QUESTION]]);
}

/** Mode `checkpoints`: the state before the input, then that of each step. */
function checkCheckpoints(parts) {
  const found = dataOf(parts, "checkpoints");
  const steps = found.map(({ metadata }) => [metadata.step, metadata.source]);
  deepEqual(steps, [[-1, "input"], [0, "input"], [1, "loop"], [2, "loop"]]);
  deepEqual(found.map(({ next }) => next), ["__start__", ...NODES].map((node) => [node]));
  deepEqual(found.map(({ tasks }) => tasks.map(({ name }) => name)), found.map(({ next }) => next));
  const begun = dataOf(parts, "tasks").filter((task) => "input" in task);
  const ids = found.slice(1).flatMap(({ tasks }) => tasks.map(({ id }) => id));
  deepEqual(ids, begun.map(({ id }) => id));
  const parents = [null, ...found.slice(0, -1).map(({ config }) => config)];
  deepEqual(found.map(({ parent_config }) => parent_config), parents);
  const places = found.map(({ config }) => config.configurable.checkpoint_id);
  equal(new Set(places).size, found.length);
  deepEqual(found.map(({ values }) => values.value), [undefined, "init", "x", "x"]);
}

/** Mode `debug`: the events of the modes `tasks` and `checkpoints`. */
function checkDebug(parts) {
  const debug = dataOf(parts, "debug");
  for (const { timestamp } of debug) ok(!Number.isNaN(Date.parse(timestamp)), timestamp);
  const made = debug.filter(({ type }) => type === "checkpoint");
  deepEqual(made.map(({ step }) => step), [-1, 0, 1, 2]);
  // A payload has the addresses of the checkpoint and of its parent in addition.
  const plain = made.map(({ payload: { checkpoint, parent_checkpoint, ...rest } }) => {
    equal(checkpoint.checkpoint_id, rest.config.configurable.checkpoint_id);
    const parent = rest.parent_config?.configurable.checkpoint_id;
    equal(parent_checkpoint?.checkpoint_id, parent);
    return rest;
  });
  deepEqual(plain, dataOf(parts, "checkpoints"));
  const rest = debug.filter(({ type }) => type !== "checkpoint");
  deepEqual(rest.map(({ payload }) => payload), dataOf(parts, "tasks"));
  const type = ({ payload }) => ("input" in payload ? "task" : "task_result");
  deepEqual(rest.map((it) => it.type), rest.map(type));
  deepEqual(rest.map(({ step }) => step), [1, 1, 2, 2, 3, 3]);
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
