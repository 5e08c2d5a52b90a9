// A run as the value of a search parameter: `<thread>~<run>`.
import type { Check } from "./search.ts";

/** A run of a thread. */
export interface RunName {
  thread: string;
  run: string;
}

const BETWEEN = "~";

/** Characters of the longest value. Ids have at most 256, each of which may be escaped. */
const LONGEST = 2 * 3 * 256 + 1;

/** Returns the value of a run. A thread and a run may have any name. */
export function runText({ thread, run }: RunName): string {
  return [thread, run].map(escaped).join(BETWEEN);
}

function escaped(id: string): string {
  return id.replace(/[%~]/g, (char) => (char === BETWEEN ? "%7E" : "%25"));
}

/** Returns the run of a value, or `undefined` if the value has none. */
export function readRun(text: string): RunName | undefined {
  const [thread, run, ...rest] = text.split(BETWEEN).map(unescaped);
  return thread && run && rest.length === 0 ? { thread, run } : undefined;
}

function unescaped(id: string): string {
  return id.replace(/%(7E|25)/gi, (_, code: string) => (code === "25" ? "%" : BETWEEN));
}

/** Accepts a run. */
export const runName: Check = (text) =>
  text.length <= LONGEST && readRun(text) !== undefined ? text : undefined;
