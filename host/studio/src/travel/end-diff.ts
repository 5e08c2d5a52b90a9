// What differs between the states with which two runs ended.
import { type ChannelDiff, diffState } from "../state/diff.ts";

/** Returns the channels that differ. Ids of messages do not count, since each run makes others. */
export function endDiff(left: unknown, right: unknown): ChannelDiff[] {
  return diffState(withoutMessageIds(left), withoutMessageIds(right));
}

function withoutMessageIds(state: unknown): object {
  const channels = Object.entries(Object(state)).map(([channel, value]) => {
    return [channel, Array.isArray(value) ? value.map(withoutId) : value] as const;
  });
  return Object.fromEntries(channels);
}

/** Returns a message without its id, and any other value as it is. */
function withoutId(value: unknown): unknown {
  // The copy of a long text would have a field for each character.
  if (typeof Object(value).role !== "string") return value;
  const { id, ...message } = Object(value);
  return message;
}
