// The benchmark's cases on LangGraph.js with its saver in memory.
//
// usage: main.mjs <case> <store> <order>, as for the Python program.

import { readFileSync } from "node:fs";

import { Annotation, END, MemorySaver, Send, START, StateGraph } from "@langchain/langgraph";

// One more than the steps of the graph, because the input counts as a step.
const ROOM = 2;

const [caseName, store, orderText] = process.argv.slice(2);
const order = JSON.parse(orderText);

const BUILDERS = { line, "fan-out": fanOut, loop, history: loop, append };

const graph = BUILDERS[caseName]();
const saver = store === "none" ? undefined : new MemorySaver();
const compiled = graph.builder.compile({ checkpointer: saver });
let threads = 0;

const answer = caseName === "history" ? await reads() : await runs();
const facts = { stored_bytes: null, peak_rss_bytes: peakRssBytes(), version: version() };
console.log(JSON.stringify({ ...answer, ...facts }));

// Measures bursts of runs. Threads are deleted between bursts, outside of the measured time.
async function runs() {
  if (order.seconds > 0) await forget([await run()]);
  let steps = 0;
  let seconds = 0;
  do {
    const started = performance.now();
    const lanes = await Promise.all(Array.from({ length: order.lanes }, lane));
    seconds += (performance.now() - started) / 1000;
    const made = lanes.flat();
    steps += graph.steps * made.length;
    await forget(made);
  } while (seconds < order.seconds);
  return { steps, seconds };
}

async function lane() {
  const made = [];
  for (let index = 0; index < order.runs; index += 1) made.push(await run());
  return made;
}

async function run() {
  const thread = `thread-${threads++}`;
  expect(await compiled.invoke(graph.give(), config(thread)));
  return thread;
}

async function forget(made) {
  for (const thread of made) await saver?.deleteThread(thread);
}

// Measures reads of one long thread: the newest checkpoints, all of them, and the latest state.
async function reads() {
  const started = performance.now();
  const where = config(await run());
  const seconds = (performance.now() - started) / 1000;
  const history = async (options, least) => {
    let length = 0;
    for await (const _ of compiled.getStateHistory(where, options)) length += 1;
    if (length < least) throw new Error(`history of ${length}`);
  };
  const page = () => history({ limit: order.page }, order.page);
  const latest = async () => expect((await compiled.getState(where)).values);
  const times = {
    page_ms: await medianMs(page, order.page_reads),
    all_ms: await medianMs(() => history({}, order.turns), order.all_reads),
    latest_ms: await medianMs(latest, order.latest_reads),
  };
  return { steps: graph.steps, seconds, reads: times };
}

async function medianMs(read, times) {
  const taken = [];
  for (let index = 0; index < times; index += 1) {
    const started = performance.now();
    await read();
    taken.push(performance.now() - started);
  }
  return taken.sort((a, b) => a - b)[times >> 1];
}

function config(thread) {
  return { recursionLimit: graph.limit, configurable: { thread_id: thread } };
}

function expect(state) {
  if (!graph.check(state)) throw new Error(JSON.stringify(state));
}

function touch({ document }) {
  return { document: { ...document, n: document.n + 1 } };
}

function newDocument() {
  return { n: 0, text: text(order.text_bytes, 0) };
}

function line() {
  const builder = new StateGraph(Annotation.Root({ document: Annotation() }));
  const names = Array.from({ length: order.nodes }, (_, index) => `n${index}`);
  for (const name of names) builder.addNode(name, touch);
  const way = [START, ...names, END];
  for (let index = 1; index < way.length; index += 1) builder.addEdge(way[index - 1], way[index]);
  return {
    builder,
    steps: order.nodes,
    limit: order.nodes + ROOM,
    give: () => ({ document: newDocument() }),
    check: (state) => state.document.n === order.nodes,
  };
}

function fanOut() {
  const documents = Annotation({ reducer: (old, more) => old.concat(more), default: () => [] });
  const spread = () =>
    Array.from({ length: order.sends }, () => new Send("work", { document: newDocument() }));
  const builder = new StateGraph(Annotation.Root({ documents, total: Annotation() }))
    .addNode("split", () => ({ total: 0 }))
    .addNode("work", (state) => ({ documents: [touch(state).document] }))
    .addNode("join", (state) => ({ total: state.documents.reduce((sum, { n }) => sum + n, 0) }))
    .addEdge(START, "split")
    .addConditionalEdges("split", spread, ["work"])
    .addEdge("work", "join")
    .addEdge("join", END);
  return {
    builder,
    steps: order.sends + 2,
    limit: order.sends + ROOM,
    give: () => ({ documents: [] }),
    check: (state) => state.total === order.sends,
  };
}

function loop() {
  const onward = (state) => (state.document.n < order.turns ? "touch" : END);
  const builder = new StateGraph(Annotation.Root({ document: Annotation() }))
    .addNode("touch", touch)
    .addEdge(START, "touch")
    .addConditionalEdges("touch", onward, ["touch", END]);
  return {
    builder,
    steps: order.turns,
    limit: order.turns + ROOM,
    give: () => ({ document: newDocument() }),
    check: (state) => state.document.n === order.turns,
  };
}

function append() {
  const log = Annotation({ reducer: (old, more) => old.concat(more), default: () => [] });
  const add = ({ n }) => ({ n: n + 1, log: [text(order.text_bytes, n)] });
  const onward = (state) => (state.n < order.items ? "add" : END);
  const builder = new StateGraph(Annotation.Root({ n: Annotation(), log }))
    .addNode("add", add)
    .addEdge(START, "add")
    .addConditionalEdges("add", onward, ["add", END]);
  return {
    builder,
    steps: order.items,
    limit: order.items + ROOM,
    give: () => ({ n: 0, log: [] }),
    check: (state) => state.log.length === order.items,
  };
}

// Returns pseudorandom letters, so that compression gives no store an advantage.
function text(size, seed) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  let state = seed + 1;
  let made = "";
  for (let index = 0; index < size; index += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    made += letters[state >>> 26];
  }
  return made;
}

function version() {
  const manifest = new URL("node_modules/@langchain/langgraph/package.json", import.meta.url);
  const { version: langgraph } = JSON.parse(readFileSync(manifest, "utf8"));
  return `LangGraph.js ${langgraph} on Node ${process.versions.node}`;
}

function peakRssBytes() {
  const [, kilobytes] = /^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "ascii"));
  return Number(kilobytes) * 1024;
}
