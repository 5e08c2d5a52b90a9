// A node that asks a question, and a tool, for componentize-qjs (QuickJS) and componentize-js
// (StarlingMonkey).

import { ask } from "wattle:plugin/interrupt@0.1.0";

const TEXT = '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}';
const DECISION = '{"type":"object","properties":{"decision":{"type":"string"}}}';

export const node = {
  describe() {
    return [
      { name: "approve", doc: "Asks a person.", inputSchema: TEXT, outputSchema: DECISION, extra: [] },
    ];
  },
  run(context, input) {
    const { text } = JSON.parse(input);
    // QuickJS has no console.
    globalThis.console?.log("asking about", text);
    const answer = ask({
      payload: JSON.stringify({ ticket: text }),
      responseSchema: '{"type":"boolean"}',
      extra: [],
    });
    const decision = JSON.parse(answer) ? "call" : "ignore";
    const update = { channel: "decision", value: JSON.stringify(decision), overwrite: false };
    return { updates: [update], goto: [], sends: [], extra: [] };
  },
};

export const tool = {
  list() {
    return [
      {
        name: "count_words",
        description: "Counts the words of a text.",
        argumentsSchema: TEXT,
        acceptsInvalid: false,
        extra: [],
      },
    ];
  },
  call(context, args) {
    const words = JSON.parse(args).text.split(/\s+/).filter(Boolean).length;
    if (words === 0) {
      throw new Error("there are no words");
    }
    const answer = JSON.stringify({ words });
    const content = [{ tag: "text", val: answer }];
    return { content, structured: answer, isError: false, updates: [], extra: [] };
  },
};
