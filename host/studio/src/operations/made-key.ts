// The key that was created last, until a user has kept it. It is in memory only, and outlives a
// change of the credentials, after which every view is shown anew.
import type { Schemas } from "../api/client.ts";

export type MadeKey = Schemas["MadeKeyDocument"];

let made: MadeKey | undefined;
const watchers = new Set<() => void>();

export function madeKey(): MadeKey | undefined {
  return made;
}

/** Shows a key, or hides the one that is shown. */
export function showKey(key: MadeKey | undefined): void {
  made = key;
  for (const watcher of [...watchers]) watcher();
}

export function watchMadeKey(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
