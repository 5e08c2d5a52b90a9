// The texts of differences.
import { bytesText, countText } from "../amount.ts";

const sizeOf = (bytes: unknown) =>
  typeof bytes === "number" ? `about ${bytesText(bytes)}` : "nothing";

export const TEXTS = {
  kinds: { added: "added", removed: "removed", changed: "changed", sized: "not compared" },
  whole: "the value",
  before: (path: string) => `${path}, before`,
  after: (path: string) => `${path}, after`,
  sized: (before: unknown, after: unknown) =>
    `The values are too large to compare: ${sizeOf(before)} before, ${sizeOf(after)} after.`,
  more: (shown: number, count: number) => `Show more (${countText(shown)} of ${countText(count)})`,
  cut: "There are more changes than the studio looks for.",
  same: "The value is the same as before.",
};
