// Nodes that get several results of a call of the host: pieces of a completion, batches, and tools.

import { emit, Failure, http, llm, node, type ToolInfo, tools } from "wattle-plugin";
import * as z from "zod";

export const stream = node(
  "stream",
  {
    doc: "Reads a completion in pieces and emits them.",
    input: z.object({ question: z.string().describe("The question.") }),
    output: z.object({
      streamed: z.string().describe("The text of the pieces."),
      answer: z.string().describe("The text of the completion."),
    }),
  },
  ({ question }) => {
    const events = llm.stream({ route: "chat", user: question });
    let streamed = "";
    for (const event of events) {
      if (event.type === "text") streamed += event.text;
      if (event.type === "restart") streamed = "";
      emit.custom("piece", piece(event));
    }
    return { streamed, answer: events.finish().text() };
  },
);

function piece(event: llm.StreamEvent): unknown {
  switch (event.type) {
    case "text":
      return { text: event.text };
    case "reasoning":
      return { reasoning: event.text };
    case "tool_call_delta":
      return [event.index, event.name ?? null, event.arguments];
    case "restart":
      return "restart";
    case "other":
      return event.value;
  }
}

export const batch = node(
  "batch",
  {
    doc: "Calls models and sends requests in batches, whose first requests are invalid.",
    input: z.object({
      question: z.string().describe("The question."),
      url: z.string().describe("The URL."),
    }),
    output: z.object({
      answers: z.array(z.unknown()).describe("Texts and failures."),
      responses: z.array(z.unknown()).describe("Bodies and failures."),
    }),
  },
  ({ question, url }) => {
    const prompt = { route: "chat", user: question };
    const completions = llm.completeAll([{ ...prompt, extra: { candidate: "first" } }, prompt]);
    const missing = new http.Request("POST", url, { blob: "none" });
    const responses = http.sendAll([missing, new http.Request("POST", url)]);
    return {
      answers: completions.map((it) => resultOf(it, (completion) => completion.text())),
      responses: responses.map((it) => resultOf(it, (response) => response.json())),
    };
  },
);

/** Returns the output of a call of a batch, or what its failure says. */
export function resultOf<T>(result: T | Failure, output: (result: T) => unknown): unknown {
  if (result instanceof Failure) return { code: result.code, message: result.message };
  return { output: output(result) };
}

export const listTools = node(
  "list_tools",
  {
    doc: "Lists the tools that the plugin may call.",
    output: z.object({ tools: z.array(z.unknown()).describe("The tools.") }),
  },
  () => ({ tools: tools.list().map(description) }),
);

function description(tool: ToolInfo): unknown {
  return {
    name: tool.name,
    description: tool.description,
    arguments_schema: tool.argumentsSchema,
    accepts_invalid: tool.acceptsInvalid,
    read_only: tool.hints().readOnly,
    reference: tool.reference(),
  };
}
