// Which nodes of a picture are open, as the value of a search parameter: `plan*review/check`.
import type { Check } from "../router/search.ts";
import { pathsAround } from "./scene.ts";

/** Separates the paths in a value. No name of a node contains it. */
const BETWEEN = "*";

/** Characters of the longest value. Further nodes are not in it. */
const LONGEST = 1_024;

/** Accepts the paths of open nodes. */
export const openNodes: Check = (text) => (text.length <= LONGEST ? text : undefined);

/** Returns the paths in a value. Without one, the nodes around the selected item are open. */
export function openedIn(text: string | undefined, selected: string | undefined): Set<string> {
  if (text === undefined) return new Set(pathsAround(selected ?? ""));
  return new Set(text.split(BETWEEN).filter((path) => path !== ""));
}

/** Returns the value of open nodes; `undefined` if it is the one that an address needs not have. */
export function openedText(
  open: ReadonlySet<string>,
  selected: string | undefined,
): string | undefined {
  const around = openedIn(undefined, selected);
  if (open.size === around.size && [...open].every((path) => around.has(path))) return undefined;
  let text = "";
  for (const path of open) {
    const next = text === "" ? path : text + BETWEEN + path;
    if (next.length <= LONGEST) text = next;
  }
  return text === "" ? BETWEEN : text;
}
