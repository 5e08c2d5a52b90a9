// The texts of the list of threads.
import type { Problem } from "./metadata.ts";

/** Numbers as English texts have them. */
const NUMBER = new Intl.NumberFormat("en");

/** What is wrong with a pair of metadata. */
const PAIR_PROBLEMS = {
  key: (pair: string) => `Write pairs such as customer=7. This is none: ${pair}`,
  value: (pair: string) => `The value is not valid JSON: ${pair}`,
  twice: (pair: string) => `The key is there twice: ${pair}`,
};

export const TEXTS = {
  title: "Threads",
  filters: "Filters",
  text: "Search",
  textHint: "id, run, failure, metadata",
  app: "App",
  status: "Status",
  graph: "Graph",
  tenant: "Tenant",
  failure: "Failure code",
  metadata: "Metadata",
  metadataHint: 'customer=7, plan="1"',
  createdSince: "Created since",
  createdTo: "Created until",
  updatedSince: "Updated since",
  updatedTo: "Updated until",
  more: (count: number) => (count === 0 ? "More filters" : `More filters (${count})`),
  all: "All",
  /** A choice with the number of its threads. `+` means that there may be more. */
  counted: (name: string, count: number, isComplete: boolean) =>
    `${name} (${NUMBER.format(count)}${isComplete ? "" : "+"})`,
  clear: "Clear filters",
  focusFilters: "Go to the filters",
  tooLong: "The text is too long.",
  partial: "Enter a complete date and time.",
  noTime: "Enter a date and a time from 1970 to 9998.",
  pairProblem: ({ kind, pair }: Problem) => PAIR_PROBLEMS[kind](pair),
  reading: "Reading the threads…",
  none: "There are no threads yet. A run of an app makes one.",
  noneMatch: "No thread matches the filters.",
  searching: "Searching older threads…",
  stopped: "Not all older threads were searched.",
  further: "Search further",
  list: "Threads, newest update first",
  thread: "Thread",
  appAndGraph: "App and graph",
  updated: "Updated",
  created: "Created",
};
