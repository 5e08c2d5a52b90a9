// The examples of the README as one plugin.

import {
  clock,
  handler,
  interrupt,
  llm,
  log,
  manifest,
  node,
  plugin,
  Response,
  reducer,
  runs,
  ToolOutput,
  tool,
} from "wattle-plugin";
import * as z from "zod";
import SUMMARIZE from "./summarize.md?raw";

const countWords = node(
  "count_words",
  {
    doc: "Counts the words of a text.",
    input: z.object({ text: z.string() }),
    output: z.object({ words: z.int() }),
  },
  ({ text }) => ({ words: text.split(/\s+/).filter((word) => word !== "").length }),
);

const keepWords = node(
  "keep_words",
  {
    doc: "Keeps the words that matter.",
    input: z.object({ words: z.array(z.string()) }),
    output: z.object({ words: z.array(z.string()) }),
    config: z.strictObject({
      ignore: z.array(z.string()).default([]).describe("Words to leave out."),
    }),
  },
  ({ words }, context) => {
    const { ignore } = context.config;
    return { words: words.filter((word) => !ignore.includes(word)) };
  },
);

const stamp = node(
  "stamp",
  {
    doc: "Returns the date on which the node runs.",
    output: z.object({ date: z.string() }),
  },
  () => ({ date: clock.date(clock.toZone(clock.nowMs()).civil) }),
);

const summarize = node(
  "summarize",
  {
    doc: "Summarizes a text.",
    input: z.object({ text: z.string() }),
    output: z.object({ summary: z.string() }),
  },
  ({ text }) => {
    const completion = llm.complete({ route: "chat", system: SUMMARIZE, user: text });
    log.info("summarized", { characters: text.length });
    return { summary: completion.text() };
  },
);

const fahrenheit = tool(
  "fahrenheit",
  {
    description: "Converts a temperature to Fahrenheit.",
    arguments: z.object({ celsius: z.number().describe("Degrees Celsius.") }),
    readOnly: true,
  },
  ({ celsius }) => `${celsius * 1.8 + 32} F`,
);

const pay = tool(
  "pay",
  {
    description: "Pays an amount, if a person approves.",
    arguments: z.object({ amount: z.int().min(0).describe("In cents.") }),
  },
  ({ amount }) => {
    const decision = interrupt.ask({ amount }, z.object({ approved: z.boolean() }));
    if (!decision.approved) return ToolOutput.error("the payment was not approved");
    // The run paused above; what follows happens once.
    return ToolOutput.text("paid").withUpdate("paid", amount);
  },
);

const max = reducer(
  "max",
  { doc: "Keeps the larger number.", value: z.int() },
  (current, updates) => Math.max(...updates, ...(current === undefined ? [] : [current])),
);

const order = handler(
  "POST",
  "/api/orders",
  {
    doc: "Starts a run and lets the host stream it.",
    body: z.object({ text: z.string() }).meta({ id: "Order" }),
    events: z.unknown(),
  },
  (request) => {
    const { text } = request.json();
    const run = runs.start({ graph: "order", input: { text } });
    return Response.handOff({ threadId: run.threadId, format: "sse" });
  },
);

export default plugin(
  countWords,
  keepWords,
  stamp,
  summarize,
  fahrenheit,
  pay,
  max,
  order,
  manifest('llm = ["chat"]\n'),
);
