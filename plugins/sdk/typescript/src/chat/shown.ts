// Messages of the state as messages of the AI SDK, which `useChat` shows.
//
// Each message of the user is followed by one message of the assistant with texts and tool calls, as in
// the host's stream of the format `ai-sdk`.

import type { Json } from "../json.ts";
import { readStored, resultOf, type Stored, type StoredCall, textOf } from "./stored.ts";
import { UiMessage } from "./ui/message.ts";
import { assistantText, type CallState, stepStart, toolPart, userText } from "./ui/part.ts";

/**
 * Converts the value of a channel with the reducer `messages`. Invalid messages are skipped.
 *
 * If `whole` is false, the messages after the last one of the user are omitted: the stream of an active
 * run has them from its beginning. `unfinished` is the error of a tool call without a result, for
 * users.
 */
export function shownOf(
  channel: Json | undefined,
  whole: boolean,
  unfinished: string,
): UiMessage[] {
  const all = readStored(channel);
  const end = whole ? all.length : all.findLastIndex(isUser) + 1;
  const turns: Stored[][] = [];
  for (const message of all.slice(0, end)) {
    const turn = isUser(message) ? undefined : turns.at(-1);
    if (turn === undefined) turns.push([message]);
    else turn.push(message);
  }
  return turns.flatMap((turn) => [...user(turn), ...assistant(turn, unfinished)]);
}

/** Returns the message of the user with which a turn begins, if there is one. */
function user([first]: readonly Stored[]): UiMessage[] {
  if (first === undefined || !isUser(first)) return [];
  return [new UiMessage(first.id, "user", [userText(textOf(first.content))])];
}

function isUser({ role }: Stored): boolean {
  return role === "user";
}

/** Returns one message for all messages of a turn but that of the user. */
function assistant(messages: readonly Stored[], unfinished: string): UiMessage[] {
  const turns = messages.filter(({ role }) => role === "assistant");
  const [first] = turns;
  if (first === undefined) return [];
  const parts = turns.flatMap((turn) => partsOf(turn, messages, unfinished));
  return [new UiMessage(first.id, "assistant", parts)];
}

/** Returns the parts of a model turn, with the results of its tool calls. */
function partsOf(turn: Stored, messages: readonly Stored[], unfinished: string): Json[] {
  const text = textOf(turn.content);
  const calls = turn.toolCalls.map((call) => toolPart(call, stateOf(call, messages, unfinished)));
  return [stepStart(), ...(text === "" ? [] : [assistantText("text", text)]), ...calls];
}

/** Returns the result of a tool call, or an error if the call has no result. */
function stateOf(call: StoredCall, messages: readonly Stored[], unfinished: string): CallState {
  const result = messages.find(({ role, toolCallId }) => role === "tool" && toolCallId === call.id);
  if (result === undefined) return { type: "error", error: unfinished };
  return result.status === "error"
    ? { type: "error", error: textOf(result.content) }
    : { type: "output", output: resultOf(result) };
}
