// What a model streams: its text, its reasoning, and the tool calls that it asks for.
import type { OutlineOf } from "../api/log.ts";
import type { CallState } from "./tree.ts";

/** Characters of streamed text that a call keeps. The last ones are kept. */
const STREAMED_CHARS = 100_000;

/** Tool calls of one completion that are shown while they are streamed. */
const STREAMED_ASKS = 100;

/** Adds deltas to what a call has streamed. */
export function addDeltas(call: CallState, deltas: OutlineOf<"streamed">["deltas"]): void {
  for (const delta of deltas) {
    if (delta.kind === "text") call.text = extended(call.text, delta.text);
    if (delta.kind === "reasoning") call.reasoning = extended(call.reasoning, delta.text);
    if (delta.kind === "tool_call") ask(call, delta.index, delta.name ?? "", delta.arguments);
    if (delta.kind === "restart") restart(call);
  }
}

/** Forgets what a call has streamed. */
export function restart(call: CallState): void {
  Object.assign(call, { text: "", reasoning: "", asks: [] });
}

/** Returns a streamed text with more of it. */
function extended(text: string, more: string): string {
  const whole = text + more;
  return whole.length > STREAMED_CHARS ? whole.slice(-STREAMED_CHARS) : whole;
}

/** Adds a delta to the tool calls that a model asks for. */
function ask(call: CallState, index: number, name: string, text = ""): void {
  if (index >= STREAMED_ASKS) return;
  while (call.asks.length <= index) call.asks.push({ name: "", arguments: "" });
  const before = call.asks[index] ?? { name: "", arguments: "" };
  call.asks[index] = { name: before.name + name, arguments: extended(before.arguments, text) };
}
