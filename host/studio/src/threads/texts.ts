// The texts of the list of threads.
import { countText } from "../part/amount.ts";
import type { Problem } from "./metadata.ts";

/** What is wrong with a pair of metadata. */
const PAIR_PROBLEMS = {
  key: (pair: string) => `Write pairs such as customer=7. This is none: ${pair}`,
  value: (pair: string) => `The value is not valid JSON: ${pair}`,
  twice: (pair: string) => `The key is there twice: ${pair}`,
};

export const TEXTS = {
  title: "Threads",
  textHint: "id, run, failure, metadata",
  metadata: "Metadata",
  metadataHint: 'customer=7, plan="1"',
  createdSince: "Created since",
  createdTo: "Created until",
  updatedSince: "Updated since",
  updatedTo: "Updated until",
  /** A choice with the number of its threads. `+` means that there may be more. */
  counted: (name: string, count: number, isComplete: boolean) =>
    `${name} (${countText(count)}${isComplete ? "" : "+"})`,
  pairProblem: ({ kind, pair }: Problem) => PAIR_PROBLEMS[kind](pair),
  reading: "Reading the threads…",
  none: "There are no threads yet. A run of an app makes one.",
  noneMatch: "No thread matches the filters.",
  searching: "Searching older threads…",
  stopped: "Not all older threads were searched.",
  list: "Threads, newest update first",
  thread: "Thread",
  updated: "Updated",
  created: "Created",
};
