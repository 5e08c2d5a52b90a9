// The texts of the filters of lists.
import { countText } from "../amount.ts";
import type { Problem } from "./metadata.ts";

/** What is wrong with a pair of metadata. */
const PAIR_PROBLEMS = {
  key: (pair: string) => `Write pairs such as customer=7. This is none: ${pair}`,
  value: (pair: string) => `The value is not valid JSON: ${pair}`,
  twice: (pair: string) => `The key is there twice: ${pair}`,
};

export const TEXTS = {
  filters: "Filters",
  text: "Search",
  app: "App",
  status: "Status",
  graph: "Graph",
  tenant: "Tenant",
  failure: "Failure code",
  metadata: "Metadata",
  metadataHint: 'customer=7, plan="1"',
  pairProblem: ({ kind, pair }: Problem) => PAIR_PROBLEMS[kind](pair),
  /** A choice with the number of its items. `+` means that there may be more. */
  counted: (name: string, count: number, isComplete: boolean) =>
    `${name} (${countText(count)}${isComplete ? "" : "+"})`,
  more: (count: number) => (count === 0 ? "More filters" : `More filters (${count})`),
  all: "All",
  clear: "Clear filters",
  focusFilters: "Go to the filters",
  tooLong: "The text is too long.",
  partial: "Enter a complete date and time.",
  noTime: "Enter a date and a time from 1970 to 9998.",
};
