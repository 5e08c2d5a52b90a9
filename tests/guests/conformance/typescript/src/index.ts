// The conformance plugin in TypeScript. `../../src/lib.rs` is the same plugin in Rust.

import {
  blob,
  clock,
  emit,
  Failure,
  handler,
  http,
  interrupt,
  llm,
  log,
  manifest,
  memory,
  node,
  Outcome,
  plugin,
  Response,
  random,
  reducer,
  runs,
  settings,
  sql,
  ToolOutput,
  tool,
  tools,
} from "wattle-plugin";
import * as z from "zod";
import { batch, listTools, resultOf, stream } from "./batches.ts";
import { delegate, draw, ownModel, readSettings, whose } from "./services.ts";

const Text = z.object({ text: z.string().describe("The text.") });

function wordsOf(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}

const words = node(
  "words",
  {
    doc: "Counts the words of a text.",
    input: Text,
    output: z.object({ words: z.int().describe("Number of words.") }),
  },
  ({ text }) => {
    const words = wordsOf(text);
    log.info("counted", { words });
    emit.custom("counted", { words });
    emit.progress("counted", 0.5);
    return { words };
  },
);

const echo = node(
  "echo",
  {
    doc: "Writes the value that it reads.",
    input: z.object({ value: z.unknown().describe("Any value.") }),
    output: z.object({ value: z.unknown().describe("Any value.") }),
  },
  ({ value }) => ({ value }),
);

const keep = node(
  "keep",
  {
    doc: "Keeps the words that matter.",
    input: z.object({ words: z.array(z.string()).describe("The words.") }),
    output: z.object({ kept: z.array(z.string()).describe("The words that matter.") }),
    config: z.strictObject({
      ignore: z.array(z.string()).default([]).describe("Words to leave out."),
    }),
  },
  ({ words }, { config }) => ({ kept: words.filter((word) => !config.ignore.includes(word)) }),
);

const approve = node(
  "approve",
  {
    doc: "Asks whether a text may be published.",
    input: Text,
    output: z.object({ decision: z.string().describe("`call` or `ignore`.") }),
  },
  ({ text }) => {
    const isApproved = interrupt.ask({ ticket: text }, z.boolean());
    return { decision: isApproved ? "call" : "ignore" };
  },
);

const Guess = z.object({ number: z.int().describe("A number.") });

const ask = node(
  "ask",
  {
    doc: "Asks a model for a text and for a document.",
    input: z.object({ question: z.string().describe("The question.") }),
    output: z.object({
      answer: z.string().describe("The text."),
      number: z.int().describe("The number of the document."),
    }),
  },
  ({ question }) => {
    const system = "Answer in one word.";
    const text = llm.complete({ route: "chat", system, user: question }).text();
    const completion = llm.complete({
      route: "chat",
      user: question,
      schema: { name: "guess", type: Guess },
      temperature: 0,
      maxOutputTokens: 100,
    });
    return { answer: text, number: completion.structuredAs(Guess).number };
  },
);

const fetch = node(
  "fetch",
  {
    doc: "Sends a request.",
    input: z.object({ url: z.string().describe("The URL.") }),
    output: z.object({
      status: z.int().describe("The status of the response."),
      call: z.int().describe("The number in the response."),
    }),
  },
  ({ url }) => {
    const response = http.post(url, {
      query: { page: "1 2" },
      headers: { "x-mark": "a" },
      json: { n: 1 },
      idempotencyKey: "key",
      timeoutMs: 5_000,
    });
    const { call } = response.json(z.object({ call: z.int() }));
    return { status: response.status, call };
  },
);

const book = node(
  "book",
  {
    doc: "Writes a row in a transaction and reads it.",
    input: z.object({ name: z.string().describe("The name.") }),
    output: z.object({ rows: z.array(z.unknown()).describe("The row.") }),
  },
  ({ name }) => {
    const transaction = sql.database("shop").begin();
    const insert =
      "INSERT INTO item (name, price, sold, note) VALUES ($1, $2, $3, $4) RETURNING id";
    const { returned } = transaction.execute(insert, [name, 2.5, true, null]);
    const id = returned.one().get("id", z.int());
    const select = "SELECT id, name, price, sold, note FROM item WHERE id = $1";
    const rows = transaction.query(select, [id]);
    transaction.commit();
    return { rows: rows.toJson() };
  },
);

const remember = node(
  "remember",
  {
    doc: "Stores a document and bytes, and finds them.",
    input: z.object({ fact: z.string().describe("The fact.") }),
    output: z.object({
      found: z.array(z.unknown()).describe("The documents."),
      namespaces: z.array(z.array(z.string())).describe("Namespaces with documents."),
      bytes: z.string().describe("The stored bytes as text."),
      refused: z.string().describe("Code of the failure for a namespace without a grant."),
    }),
  },
  ({ fact }) => {
    const namespace = ["users", "7"];
    memory.put(namespace, "fact", { text: fact });
    const read = memory.get(namespace, "fact");
    const searched = memory.search(["users"], { query: "tea" });
    const found = [...(read === undefined ? [] : [read]), ...searched].map(({ value }) => value);
    const namespaces = memory.listNamespaces(["users"], { limit: 10 });
    const stored = blob.put(new TextEncoder().encode(fact), "text/plain");
    const bytes = new TextDecoder().decode(blob.get(stored));
    return { found, namespaces, bytes, refused: refusal() };
  },
);

function refusal(): string {
  try {
    memory.put(["others"], "fact", {});
    return "";
  } catch (error) {
    return Failure.from(error).code;
  }
}

const both = node(
  "both",
  {
    doc: "Calls tools at once: with arguments, with invalid ones, and one that does not exist.",
    input: Text,
    output: z.object({ results: z.array(z.unknown()).describe("Outputs and failures.") }),
  },
  ({ text }) => {
    const calls = [
      new tools.Call("count_words", { text }, { callId: "a" }),
      new tools.Call("count_words", {}, { callId: "b" }),
      new tools.Call("count_letters", {}, { callId: "c" }),
    ];
    const results = tools.callAll(calls);
    return { results: results.map((it) => resultOf(it, (output) => output.structured ?? null)) };
  },
);

const buy = node(
  "buy",
  {
    doc: "Calls a tool that asks a person.",
    input: z.object({ amount: z.int().describe("In cents.") }),
    output: z.object({ receipt: z.string().describe("What the tool says.") }),
  },
  ({ amount }) => {
    const output = tools.call("pay", { amount }, { callId: "p" });
    return { receipt: output.textContent() };
  },
);

const spread = node(
  "spread",
  {
    doc: "Sends a task for each number.",
    input: z.object({ numbers: z.array(z.int()).describe("The numbers.") }),
  },
  ({ numbers }) => {
    const outcome = Outcome.nothing();
    for (const number of numbers) outcome.send("square", { number });
    return outcome;
  },
);

const square = node(
  "square",
  {
    doc: "Squares a number.",
    input: z.object({ number: z.int().describe("The number.") }),
    output: z.object({ squares: z.array(z.int()).describe("The square.") }),
  },
  ({ number }) => ({ squares: [number * number] }),
);

const total = node(
  "total",
  {
    doc: "Replaces the squares by their sum and ends.",
    input: z.object({ squares: z.array(z.int()).describe("The squares.") }),
    output: z.object({ squares: z.array(z.int()).describe("Their sum.") }),
  },
  ({ squares }) => {
    const sum = squares.reduce((sum, square) => sum + square, 0);
    return new Outcome({ squares: [sum] }).overwrite("squares").goto("END");
  },
);

const fail = node(
  "fail",
  {
    doc: "Fails as asked.",
    input: z.object({
      code: z.string().describe("The code."),
      message: z.string().describe("The message."),
      retryable: z.boolean().describe("Whether another attempt may help."),
      details: z.unknown().describe("The details."),
    }),
  },
  ({ code, message, retryable, details }) => {
    throw new Failure(code, message, { retryable }).withDetails(z.json().parse(details));
  },
);

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}

const measure = node(
  "measure",
  {
    doc: "Reads the clock and random bytes, and asks for the bytes.",
    output: z.object({
      same: z.boolean().describe("Whether the bytes are those before the question."),
      color: z.string().describe("A setting."),
    }),
  },
  () => {
    const now = clock.nowMs();
    const date = clock.date(clock.toZone(now, "Asia/Shanghai").civil);
    const bytes = Array.from(random.bytes(8), hex).join("");
    const answer = interrupt.ask({ now, date, bytes }, z.string());
    return { same: answer === bytes, color: settings.require("color", z.string()) };
  },
);

const countWords = tool(
  "count_words",
  { description: "Counts the words of a text.", arguments: Text, readOnly: true },
  ({ text }) => ({ words: wordsOf(text) }),
);

const Decision = z.object({ approved: z.boolean().describe("Whether the person agrees.") });

const pay = tool(
  "pay",
  {
    description: "Pays an amount, if a person approves.",
    arguments: z.object({ amount: z.int().min(1).describe("In cents.") }),
  },
  ({ amount }) => {
    const { approved } = interrupt.ask({ amount }, Decision);
    if (!approved) return ToolOutput.error("the payment was not approved");
    return ToolOutput.text("paid").withUpdate("paid", amount);
  },
);

const max = reducer(
  "max",
  { doc: "Keeps the larger number.", value: z.int() },
  (current, updates) => Math.max(...updates, ...(current === undefined ? [] : [current])),
);

const Order = z.object({ text: z.string().describe("The text.") }).meta({ id: "Order" });

const order = handler(
  "POST",
  "/orders/{shop}",
  { doc: "Counts the words of an order.", body: Order },
  (request) => {
    const { text } = request.json();
    const { run, state } = runs.startAndWait({ graph: "words", input: { text } });
    const { words } = z.object({ words: z.int() }).parse(state);
    const shop = request.param("shop");
    // The handler also notes the shop at the thread and lists the orders of the shop.
    runs.updateThread(run.threadId, { shop });
    const { threads } = runs.threads({ graph: "words", metadata: { shop } });
    const orders = threads.map(({ metadata }) => metadata);
    const response = Response.json(201, { orders, shop, words });
    return response.withHeader("x-mark", "a");
  },
);

const urgency = handler(
  "GET",
  "/orders/{shop}",
  { doc: "Says how urgent an order is." },
  (request) => {
    const urgent = request.query("urgent");
    if (urgent === undefined) throw Failure.invalid("`urgent` is missing").withStatus(422);
    return Response.text(200, `${request.param("shop")}: ${urgent}`);
  },
);

const follow = handler(
  "GET",
  "/orders/{shop}/events",
  { doc: "Streams the events of an order." },
  (request) => Response.handOff({ threadId: request.param("shop"), format: "sse" }),
);

export default plugin(
  readSettings,
  draw,
  delegate,
  whose,
  words,
  echo,
  keep,
  approve,
  ask,
  stream,
  fetch,
  batch,
  book,
  remember,
  both,
  listTools,
  buy,
  spread,
  square,
  total,
  fail,
  measure,
  countWords,
  pay,
  max,
  order,
  urgency,
  follow,
  ownModel,
  manifest('llm = ["chat"]\n'),
);
