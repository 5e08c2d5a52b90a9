// The difference of two states, channel by channel.
import { type Diff, diffOf, field, VALUE_BYTES } from "../part/json-diff/diff.ts";

/** Bytes of all values that are compared. Further ones are compared by their sizes only. */
const STATE_BYTES = 8_000_000;

export interface ChannelDiff {
  readonly channel: string;
  readonly diff: Diff;
}

/**
 * Returns the differences of the channels of two states. `changed` are the channels that were
 * written in between; without it all are compared, and those that are the same are left out.
 */
export function diffState(
  before: unknown,
  after: unknown,
  changed?: readonly string[],
): ChannelDiff[] {
  const [old, now] = [stateOf(before), stateOf(after)];
  let left = STATE_BYTES;
  const diffs = channelsOf(old, now, changed).map((channel) => {
    const most = Math.min(VALUE_BYTES, left);
    const diff = diffOf(field(old, channel), field(now, channel), most);
    left -= diff.bytes;
    return { channel, diff };
  });
  return changed === undefined ? diffs.filter(({ diff }) => diff.changes.length > 0) : diffs;
}

/** Returns the channels that may differ, in order. A channel can also lose its value unwritten. */
function channelsOf(old: object, now: object, changed: readonly string[] | undefined): string[] {
  const all = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort();
  if (changed === undefined) return all;
  const written = new Set(changed);
  const appearing = all.filter((name) => Object.hasOwn(old, name) !== Object.hasOwn(now, name));
  return [...new Set([...written, ...appearing])].sort();
}

/** Returns a state as an object. A thread that has never run has none. */
function stateOf(state: unknown): object {
  return typeof state === "object" && state !== null ? state : {};
}
