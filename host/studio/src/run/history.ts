// The history in the request of a model call: the messages that the host adds from a channel. The
// log has their place, unless the whole request is short.

/** The messages that the host has added to a request. */
export interface History {
  readonly channel: string;
  /** Positions of the first message, and after the last one. */
  readonly from: number;
  readonly to: number;
  /** Number of messages that the channel had. */
  readonly length: number;
}

/** A request of which the log has only the beginning. Its history comes before its messages. */
const HEAD =
  /^\{"route":"(?:[^"\\]|\\.)*","history":\{"channel":"(?<channel>[^"\\]*)","at":\d+,"from":(?<from>\d+),"to":(?<to>\d+),"length":(?<length>\d+),/;

/** Returns the history in the request of a model call; `undefined` if the log has all messages. */
export function historyOf(request: unknown): History | undefined {
  const { history, head }: { history?: unknown; head?: unknown } = Object(request);
  const fields: { [name: string]: unknown } = Object(
    typeof head === "string" ? HEAD.exec(head)?.groups : history,
  );
  const { channel } = fields;
  const [from = 0, to = 0, length = 0] = [fields.from, fields.to, fields.length].map(Number);
  const isValid = typeof channel === "string" && [from, to, length].every(Number.isInteger);
  return isValid ? { channel, from, to, length } : undefined;
}

/**
 * Returns the messages of a history from the state before the step. Returns `undefined` if the
 * state does not have them, because the input of the task was sent by another one.
 */
export function messagesOf(state: unknown, history: History): unknown[] | undefined {
  const list: unknown = Object(state)[history.channel];
  if (!Array.isArray(list) || list.length !== history.length) return undefined;
  return list.slice(history.from, history.to);
}
