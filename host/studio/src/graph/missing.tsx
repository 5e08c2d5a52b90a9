// Says which nested graphs the host does not have.
import { digestText } from "../part/digest.ts";
import { Text } from "../part/text.tsx";
import type { Graphs } from "./definition.ts";
import { TEXTS } from "./texts.ts";

/** Names the missing graphs of one or several versions, each once. */
export function MissingGraphs({ of }: { of: readonly Graphs[] }) {
  const texts = of.flatMap(({ missing }) =>
    [...missing].map(([graph, version]) => TEXTS.missing(graph, version && digestText(version))),
  );
  return [...new Set(texts)].map((text) => (
    <p key={text}>
      <Text>{text}</Text>
    </p>
  ));
}
