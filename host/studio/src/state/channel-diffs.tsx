// The differences of two states, channel by channel.
import { JsonDiff } from "../part/json-diff/json-diff.tsx";
import { Text, visible } from "../part/text.tsx";
import type { ChannelDiff } from "./diff.ts";
import styles from "./state.module.css";
import { TEXTS } from "./texts.ts";

/** The channels that differ, or that none does. */
export function ChannelDiffs({ diffs }: { diffs: readonly ChannelDiff[] }) {
  if (diffs.length === 0) return <p>{TEXTS.same}</p>;
  return (
    <ul className={styles.channels} aria-label={TEXTS.changed}>
      {diffs.map(({ channel, diff }) => (
        <li key={channel} data-channel={channel}>
          <h5>
            <Text>{channel}</Text>
          </h5>
          <JsonDiff label={visible(channel)} diff={diff} />
        </li>
      ))}
    </ul>
  );
}
