// Edits that were not saved when the page was left. This tab keeps them until they are saved.
import { type Block, isBlocks } from "./api.ts";

const key = (session: string) => `wattle-travel-edit-${session}`;

/** Stores edits until they are saved. */
export function keep(session: string, blocks: readonly Block[]): void {
  sessionStorage.setItem(key(session), JSON.stringify(blocks));
}

/** Removes edits that were saved, unless there are newer ones. */
export function drop(session: string, blocks: readonly Block[]): void {
  if (sessionStorage.getItem(key(session)) === JSON.stringify(blocks)) {
    sessionStorage.removeItem(key(session));
  }
}

/** Returns the stored edits. */
export function read(session: string): Block[] | undefined {
  try {
    const blocks: unknown = JSON.parse(sessionStorage.getItem(key(session)) ?? "null");
    return isBlocks(blocks) ? blocks : undefined;
  } catch {
    return undefined;
  }
}
